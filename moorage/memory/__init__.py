"""How much accelerator memory vLLM will take for weights and KV cache: exact, before it starts.

The rules are those of vLLM 0.32. Everything follows from config.json and the tensor headers;
what the rules do not cover is a refusal with a reason, never zero bytes.
"""
