"""vLLM: its arguments, environment, containers and log texts."""

from moorage.engines.vllm.engine import Vllm

__all__ = ["Vllm"]
