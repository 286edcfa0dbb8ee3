"""Several methods on the same data at the same share, scored by the same code."""
