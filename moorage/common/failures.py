"""A failure: a cause, what was found, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from moorage.common.causes import OUT_OF_REACH as OUT_OF_REACH
from moorage.common.causes import Cause as Cause
from moorage.common.causes import ExitCode as ExitCode


class Failure(Exception):
    """A failure with a cause, and the facts that a person needs to act on it.

    Args:
        detail: The finding, with names and numbers.
        suggestion: A more specific suggestion in place of the cause's own.
        log_tail: Last lines of the engine's log.
        evidence: The line of the log that shows the cause.
        named: Values from that line, by name, such as `length`.
    """

    def __init__(
        self,
        cause: Cause,
        detail: str,
        *,
        suggestion: str | None = None,
        log_tail: str = "",
        evidence: str = "",
        named: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(cause, detail, suggestion, log_tail, evidence)
        self.cause = cause
        self.detail = detail
        self.log_tail = log_tail
        self.evidence = evidence
        self.named = dict(named or {})
        self.suggestion = suggestion or cause.suggestion

    def __reduce__(self) -> tuple[object, ...]:
        return partial(Failure, **self._context), (self.cause, self.detail)

    @property
    def _context(self) -> dict[str, Any]:
        return {
            "suggestion": self.suggestion,
            "log_tail": self.log_tail,
            "evidence": self.evidence,
            "named": self.named,
        }

    def __str__(self) -> str:
        return f"{self.cause.summary}: {self.detail}"

    @property
    def content(self) -> dict[str, Any]:
        """Data for programs in addition to the texts; subclasses add their own."""
        return {}

    def at(self, place: str) -> Failure:
        """The same failure with its place in front of the detail."""
        return Failure(self.cause, f"{place}: {self.detail}", **self._context)


def require_none(failure: Failure | None) -> None:
    """Raise a failure that a step has found, if there is one."""
    if failure:
        raise failure


def combine(failures: Sequence[tuple[str, Failure]], not_begun: Sequence[str] = ()) -> Failure:
    """Combine failures of several hosts into one failure, with the cause of the first.

    Args:
        failures: Host and failure, in order of occurrence; at least one. The log and the evidence
            are those of the first, too; hosts with equal messages are named together.
        not_begun: Hosts on which nothing was started.
    """
    hosts: dict[str, list[str]] = {}
    for host, failure in failures:
        hosts.setdefault(failure.detail.removeprefix(f"{host}: "), []).append(host)
    lines = [f"{', '.join(dict.fromkeys(names))}: {detail}" for detail, names in hosts.items()]
    if not_begun:
        lines.append(f"not begun on {', '.join(dict.fromkeys(not_begun))}")
    first = failures[0][1]
    suggestion = " ".join(dict.fromkeys(failure.suggestion for _, failure in failures))
    return Failure(first.cause, "; ".join(lines), **first._context | {"suggestion": suggestion})
