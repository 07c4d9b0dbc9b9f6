"""Waves: so many models at a time, and when no more is begun."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, TypeVar

from pydantic import Field

T = TypeVar("T")

SHARE_PATTERN = r"(100|[1-9]?\d)%"
WaveSize = Annotated[str, Field(pattern=rf"^([1-9]\d{{0,3}}|{SHARE_PATTERN})$")]
"""A number of models such as 4, or a share of all of them such as 25%."""

StopAt = Annotated[str, Field(pattern=rf"^(first|never|{SHARE_PATTERN})$")]
"""`first` failure, `never`, or the share of all models that failed, such as 20%."""


def waves(models: Sequence[T], size: str) -> tuple[tuple[T, ...], ...]:
    """Cut the models into waves, in their order; a share is rounded up, and is one at least."""
    if not models:
        return ()
    each = max(1, share_of(size, len(models)) if size.endswith("%") else int(size))
    return tuple(tuple(models[at : at + each]) for at in range(0, len(models), each))


def is_over(stop_at: str, failed: int, total: int) -> bool:
    """Whether so many failures of so many models are enough to begin no more.

    Args:
        stop_at: As in `StopAt`; a share is reached by as many as make it, one at least.
        failed: Models that failed so far.
        total: Models of all waves.
    """
    if not failed or stop_at == "never":
        return False
    return stop_at == "first" or failed >= share_of(stop_at, total)


def share_of(share: str, total: int) -> int:
    """A share in percent as a number of models, rounded up."""
    return math.ceil(int(share.removesuffix("%")) * total / 100)
