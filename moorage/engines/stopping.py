"""How a serving release is stopped: which requests are awaited, and for how long."""

from __future__ import annotations

from moorage.common.values import Value
from moorage.engines.draining import Busy
from moorage.engines.launch import LaunchPlan
from moorage.engines.registry import ENGINES
from moorage.spec import StoppingSpec
from moorage.spec.arguments import parse_words

KILL_AFTER_SECONDS = 15
"""Seconds added to an engine's own time-out, for work that the time-out does not cover."""


class Ending(Value):
    """The time limits for stopping a release that serves.

    Attributes:
        busy: Where its engine reports requests in flight; None = nowhere.
        drain_seconds: How long to wait for them before SIGTERM.
        grace_seconds: From SIGTERM to SIGKILL.
    """

    busy: Busy | None = None
    drain_seconds: float
    grace_seconds: float


def ending(stopping: StoppingSpec, plan: LaunchPlan | None) -> Ending:
    """The limits that follow from the spec and the plan that was started.

    Args:
        stopping: The spec's section.
        plan: The plan that was started; None = not known.
    """
    if plan is None:
        return Ending(drain_seconds=0, grace_seconds=stopping.grace_seconds)
    engine = ENGINES[plan.engine]
    own = [_seconds(container.argv, engine.shutdown_option) for container in plan.containers]
    longest = max((seconds + KILL_AFTER_SECONDS for seconds in own if seconds), default=0)
    return Ending(
        busy=engine.busy,
        drain_seconds=stopping.drain_seconds if engine.busy else 0,
        grace_seconds=max(stopping.grace_seconds, longest),
    )


def _seconds(argv: tuple[str, ...], option: str) -> int:
    """The engine's own time-out; 0 without one."""
    value = parse_words(argv).value(option) if option else None
    return int(value) if value and value.isdecimal() else 0
