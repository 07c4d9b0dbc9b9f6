"""Who changes the ledger now, and who wants to hear of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from moorage.releases.timeline import Transition


def _nobody(_transition: Transition) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Author:
    """A flow run that changes the ledger.

    Attributes:
        flow_run_id: Its id; empty = it is done outside of any flow run.
        told: Called with each transition once it is committed. It must not fail.
        requested_by: Who asked for the run, in one line.
    """

    flow_run_id: str = ""
    told: Callable[[Transition], None] = _nobody
    requested_by: str = ""


_AUTHOR: ContextVar[Author | None] = ContextVar("author", default=None)


def author() -> Author:
    """The author of what is written here and now."""
    return _AUTHOR.get() or Author()


@contextmanager
def writing_as(one: Author) -> Iterator[None]:
    """Be the author of every transition that is made inside the block."""
    token = _AUTHOR.set(one)
    try:
        yield
    finally:
        _AUTHOR.reset(token)
