"""What a deploy was decided on: the release that held the name then, and may not hold it any more.

Whoever looks first and deploys later deploys what it saw: a redeployment waits for its wave or for
a person, reconciling for a model's lock. What somebody else did to the model meanwhile goes before.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from moorage.releases.release import ReleaseRow
from moorage.releases.states import SERVING, ReleaseState
from tasks.context import ledger

_DECIDED: ContextVar[str] = ContextVar("decided", default="")


@contextmanager
def decided_on(release: str) -> Iterator[None]:
    """Let the deploys of this block happen only where this release was the last one that ran."""
    token = _DECIDED.set(release)
    try:
        yield
    finally:
        _DECIDED.reset(token)


def overtaken(model: str) -> str:
    """What has happened to a model since a deploy of it was decided on; its lock is held.

    Returns:
        In words; empty when nothing has, or when the deploy was asked for whatever serves.
    """
    decided = _DECIDED.get()
    last = _last(model) if decided else None
    if last is None:
        return ""
    if last.id != decided:
        return f"{last.id} is there by now, and this was decided on {decided}"
    if last.state not in SERVING | {ReleaseState.ERROR}:
        return f"{last.id} is {last.state} by now"
    return ""


def _last(model: str) -> ReleaseRow | None:
    """What serves, or served last."""
    own = ledger().releases
    ran = (row for row in own.of_model(model) if row.release and row.release.ran)
    return own.running(model) or next(ran, None)
