"""When a model counts as ready, and what an engine's log tells when it does not become so."""
