"""One pure function per equation: tensors in, one value per document (or per token) out, never reduced here."""
