"""SGLang as an engine."""

from moorage.engines.sglang.engine import Sglang

__all__ = ["Sglang"]
