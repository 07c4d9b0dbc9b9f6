"""Records and results as documents that a person reads."""
