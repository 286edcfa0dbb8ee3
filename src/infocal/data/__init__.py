"""From files to documents to corpora to batches."""
