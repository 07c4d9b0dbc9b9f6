"""How a serving release is stopped: its time limits, and how waiting for its requests ended."""

from moorage.common.units import human_seconds
from moorage.common.values import Value
from moorage.engines.base import Busy
from moorage.engines.launch import LaunchPlan
from moorage.engines.registry import ENGINES
from moorage.spec import StoppingSpec
from moorage.spec.arguments import parse_words

KILL_AFTER_SECONDS = 15
"""Seconds added to an engine's own time-out, for work that the time-out does not cover."""


class Ending(Value):
    """The time limits for stopping a release that serves."""

    busy: Busy | None = None
    """Where the engine reports requests in flight; None = only gateways know of them."""

    drain_seconds: float
    """Seconds to wait for requests in flight before SIGTERM."""

    grace_seconds: float
    """Seconds from SIGTERM to SIGKILL."""


def ending(stopping: StoppingSpec, plan: LaunchPlan | None) -> Ending:
    """The limits from the spec and the started plan; `plan` None = unknown."""
    drain = stopping.drain_seconds
    if plan is None:
        return Ending(drain_seconds=drain, grace_seconds=stopping.grace_seconds)
    engine = ENGINES[plan.engine]
    own = [_seconds(container.argv, engine.shutdown_option) for container in plan.containers]
    longest = max((seconds + KILL_AFTER_SECONDS for seconds in own if seconds), default=0)
    return Ending(
        busy=engine.busy,
        drain_seconds=drain,
        grace_seconds=max(stopping.grace_seconds, longest),
    )


def _seconds(argv: tuple[str, ...], option: str) -> int:
    """The engine's own time-out in seconds; 0 = none."""
    value = parse_words(argv).value(option) if option else None
    return int(value) if value and value.isdecimal() else 0


class Drained(Value):
    """The result of waiting for requests in flight."""

    seconds: float = 0.0
    waited: bool = False
    """Whether any request was in flight."""

    left: int | None = None
    """Requests still in flight at the end; None = unknown."""

    @property
    def summary(self) -> str:
        """The result in one line; empty if unknown."""
        if self.left is None:
            return ""
        if self.left:
            noun = "request" if self.left == 1 else "requests"
            return f"{self.left} {noun} still in flight after {human_seconds(self.seconds)}"
        if self.waited:
            return f"its last request ended after {human_seconds(self.seconds)}"
        return "no request was in flight"
