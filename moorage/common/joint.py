"""Failures of several hosts as one: each is told, under the cause of the first."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.common.failures import Failure


def joint(failures: Sequence[tuple[str, Failure]], not_begun: Sequence[str] = ()) -> Failure:
    """One failure that tells what went wrong where.

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
    told = [f"{', '.join(dict.fromkeys(names))}: {detail}" for detail, names in hosts.items()]
    if not_begun:
        told.append(f"not begun on {', '.join(dict.fromkeys(not_begun))}")
    first = failures[0][1]
    return Failure(
        first.cause,
        "; ".join(told),
        suggestion=" ".join(dict.fromkeys(failure.suggestion for _, failure in failures)),
        log_tail=first.log_tail,
        evidence=first.evidence,
        named=first.named,
    )
