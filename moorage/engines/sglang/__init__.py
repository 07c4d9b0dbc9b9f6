"""SGLang as an engine."""
