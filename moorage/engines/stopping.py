"""How a serving release is stopped: which requests are awaited, and for how long."""

from __future__ import annotations

from moorage.common.values import Value
from moorage.engines.draining import Busy
from moorage.engines.launch import LaunchPlan
from moorage.engines.registry import ENGINES
from moorage.spec import StoppingSpec
from moorage.spec.arguments import argument

KILL_AFTER_SECONDS = 15
"""How much longer than its own time-out an engine is let, for what it does not count into it."""


class Ending(Value):
    """How a release that serves is ended.

    Attributes:
        busy: What tells whether requests are in flight; None = nothing does.
        drain_seconds: How long they are waited for before SIGTERM.
        grace_seconds: From SIGTERM to SIGKILL.
    """

    busy: Busy | None = None
    drain_seconds: float
    grace_seconds: float


def ending(stopping: StoppingSpec, plan: LaunchPlan | None) -> Ending:
    """From what the spec says and what really was started.

    Args:
        stopping: The spec's section.
        plan: What was started; None = nobody knows.
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
    value = argument(argv, option) if option else None
    return int(value) if value and value.isdecimal() else 0
