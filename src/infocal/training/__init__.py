"""One loop for any method with one or two players; exact resume; progress that stays quiet off a terminal."""
