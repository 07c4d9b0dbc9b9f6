"""vLLM: what its arguments and environment are made of, one noun a file."""

from moorage.engines.vllm.engine import Vllm

__all__ = ["Vllm"]
