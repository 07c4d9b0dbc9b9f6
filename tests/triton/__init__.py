"""A backend for a real tritonserver that keeps the contract of Triton's vLLM backend."""
