"""`transformers serve` as an engine."""

from moorage.engines.transformers.engine import Transformers

__all__ = ["Transformers"]
