"""Triton with its vLLM backend as an engine."""

from moorage.engines.triton.engine import Triton

__all__ = ["Triton"]
