"""The protocols of published papers, run on files that the user brings."""
