"""A failure: a cause, what was found, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moorage.common.causes import CAUSES, Cause, CauseFacts, ExitCode

__all__ = ["CAUSES", "Cause", "CauseFacts", "ExitCode", "Failure", "combine"]


class Failure(Exception):
    """A failure with a cause. Whatever a person needs to act on it travels with it.

    Args:
        cause: Entry of the taxonomy.
        detail: What was found, with names and numbers.
        suggestion: Overrides the general suggestion of the cause where more is known.
        log_tail: Last lines of the engine's log, if there is one.
        evidence: The line of the log that gave the cause away.
        named: What that line names, such as `length`.
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
        self.suggestion = suggestion or CAUSES[cause].suggestion

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.cause, self.detail, *self._context)

    @property
    def _context(self) -> tuple[str, str, str, Mapping[str, str]]:
        return self.suggestion, self.log_tail, self.evidence, self.named

    def __str__(self) -> str:
        return f"{CAUSES[self.cause].summary}: {self.detail}"

    @property
    def facts(self) -> CauseFacts:
        """The facts of the cause."""
        return CAUSES[self.cause]

    def at(self, place: str) -> Failure:
        """The same failure, which says where it happened."""
        return _rebuild(self.cause, f"{place}: {self.detail}", *self._context)


def combine(failures: Sequence[tuple[str, Failure]], not_begun: Sequence[str] = ()) -> Failure:
    """Failures of several hosts as one, under the cause of the first.

    Args:
        failures: Host and failure, in the order in which they happened; at least one.
        not_begun: Hosts on which nothing was begun any more.

    Returns:
        A failure with the cause, the log and the evidence of the first. Hosts that failed in the
        same words are named together, and so is every suggestion that differs.
    """
    hosts: dict[str, list[str]] = {}
    for host, failure in failures:
        hosts.setdefault(failure.detail.removeprefix(f"{host}: "), []).append(host)
    lines = [f"{', '.join(dict.fromkeys(names))}: {detail}" for detail, names in hosts.items()]
    if not_begun:
        lines.append(f"not begun on {', '.join(dict.fromkeys(not_begun))}")
    first = failures[0][1]
    return Failure(
        first.cause,
        "; ".join(lines),
        suggestion=" ".join(dict.fromkeys(failure.suggestion for _, failure in failures)),
        log_tail=first.log_tail,
        evidence=first.evidence,
        named=first.named,
    )


def _rebuild(
    cause: Cause,
    detail: str,
    suggestion: str,
    log_tail: str,
    evidence: str,
    named: Mapping[str, str],
) -> Failure:
    return Failure(
        cause, detail, suggestion=suggestion, log_tail=log_tail, evidence=evidence, named=named
    )
