"""Predicts the memory of an engine before it starts, exactly for weights and KV cache.

The rules are those of vLLM 0.32, and of llama.cpp for GGUF. They need only config.json and the
tensor headers. A case that they do not cover is a refusal with a reason, never zero bytes.
"""
