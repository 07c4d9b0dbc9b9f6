"""Why there is no prediction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from moorage.common.values import Value


class RefusalKind(StrEnum):
    """Who refuses."""

    REJECTED = "rejected"
    """vLLM would not start with these settings."""

    UNKNOWN = "unknown"
    """The rules here do not cover the model; nothing is guessed."""


class MemoryRefusal(Value):
    """No prediction, and the reason.

    Attributes:
        kind: Whether vLLM refuses, or the rules end here.
        reason: One sentence with names and numbers.
    """

    kind: RefusalKind
    reason: str


class Refused(Exception):
    """Carries a refusal from a rule to `predict_memory`; it never leaves the package."""

    def __init__(self, refusal: MemoryRefusal) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal


def rejected(reason: str) -> Refused:
    """vLLM refuses this combination."""
    return Refused(MemoryRefusal(kind=RefusalKind.REJECTED, reason=reason))


def unknown(reason: str) -> Refused:
    """The rules do not cover this model."""
    return Refused(MemoryRefusal(kind=RefusalKind.UNKNOWN, reason=reason))


@contextmanager
def consistent() -> Iterator[None]:
    """Refuse sizes that contradict each other, such as heads of no width.

    Raises:
        Refused: When a rule divides by nothing, or ends beyond all numbers.
    """
    try:
        yield
    except ArithmeticError as error:
        raise unknown(f"the sizes in the configuration contradict each other ({error})") from None
