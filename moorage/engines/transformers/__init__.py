"""`transformers serve` as an engine."""
