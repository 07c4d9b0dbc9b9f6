"""Refusals of a prediction: vLLM would not start, or the rules do not cover the case."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from moorage.common.refusal import Reason, Refusal

R = TypeVar("R")


def rejected(note: str) -> Refusal:
    """A refusal because vLLM refuses this combination."""
    return Refusal(Reason.REJECTED, note)


def unknown(note: str) -> Refusal:
    """A refusal because the rules do not cover this model."""
    return Refusal(Reason.UNKNOWN, note)


def rejected_if(certain: bool, note: str) -> Refusal:
    """A refusal because vLLM refuses this; not where another version of it may run."""
    return rejected(note) if certain else unknown(f"not known of this vLLM: {note}")


@contextmanager
def consistent() -> Iterator[None]:
    """Refuse sizes that contradict each other, such as heads of width 0.

    Raises:
        Refusal: When a rule divides by zero, or overflows.
    """
    try:
        yield
    except ArithmeticError as error:
        raise unknown(f"the sizes in the configuration contradict each other ({error})") from None


def caught(action: Callable[[], R]) -> R | Refusal:
    """The result of an action, or the refusal that it raises."""
    try:
        with consistent():
            return action()
    except Refusal as refusal:
        # Results are cached, so drop both tracebacks, whose frames hold the model.
        refusal.__context__ = None
        return refusal.with_traceback(None)
