"""The bricks: tensors in, tensors out; no files, no text, no configuration."""
