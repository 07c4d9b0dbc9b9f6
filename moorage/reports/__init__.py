"""Reports: records and results as documents for people."""
