"""Triton with its vLLM backend as an engine."""
