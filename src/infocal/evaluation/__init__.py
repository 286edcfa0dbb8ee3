"""How good predictions and selected words are, and how words are selected from scores; numpy only."""
