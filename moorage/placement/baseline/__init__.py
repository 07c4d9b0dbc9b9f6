"""The closest peer's placement rules, to compare our own policy with."""

from moorage.placement.baseline.baseline import Decision, decide
from moorage.placement.baseline.refusal import ErrorClass, Refusal
from moorage.placement.baseline.request import (
    BaselineRequest,
    CacheInRam,
    ManualAccelerator,
    Strategy,
)

__all__ = [
    "BaselineRequest",
    "CacheInRam",
    "Decision",
    "ErrorClass",
    "ManualAccelerator",
    "Refusal",
    "Strategy",
    "decide",
]
