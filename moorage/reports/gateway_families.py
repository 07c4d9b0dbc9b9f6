"""Metrics of a gateway, from Envoy's statistics."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from moorage.gateway.clusters import DOORMAN
from moorage.reports.metric_families import Family, counter, gauge

PATTERN = (
    r"^(http\.gateway\.downstream_(rq_active|cx_active|rq_[1-5]xx)"
    r"|cluster\..*\.upstream_(rq_active|rq_pending_active|rq_timeout|cx_connect_fail|rq_[1-5]xx))$"
)
"""The statistics to read, as a regular expression for Envoy."""

_CALLERS = re.compile(r"http\.gateway\.downstream_(?P<what>\w+)")
_ENGINES = re.compile(rf"cluster\.(?!{DOORMAN}\.)(?P<release>[^,]+)\.upstream_(?P<what>\w+)")
"""Clusters of single releases. A cluster of two releases has a comma in its name; its requests are
already counted in their own clusters."""

_STATUS = re.compile(r"rq_([1-5]xx)")

Numbers = Mapping[str, Any]
"""Statistics by Envoy's name."""


def gateway_families(statistics: Numbers) -> Iterable[Family]:
    """Metrics of a gateway's callers, and of the engines of each release behind it."""
    callers = {(match["what"],): n for match, n in _matched(_CALLERS, statistics)}
    engines = {(match["release"], match["what"]): n for match, n in _matched(_ENGINES, statistics)}
    in_flight = {(): callers.get(("rq_active",), 0)}
    yield gauge("gateway_requests", "Requests of callers in flight.", [], in_flight)
    connections = {(): callers.get(("cx_active",), 0)}
    yield gauge("gateway_connections", "Open connections of callers.", [], connections)
    text = "Answers to callers by status, those of the gateway itself included."
    yield counter("gateway_responses", text, ["code"], _by_status(callers))
    text = "Requests in flight to the engines of a release, and those that wait for a connection."
    waiting = {
        (release, state): engines.get((release, what), 0)
        for release in sorted({release for release, _ in engines})
        for state, what in (("active", "rq_active"), ("pending", "rq_pending_active"))
    }
    yield gauge("gateway_engine_requests", text, ["release", "state"], waiting)
    text = "Answers of the engines of a release by status."
    yield counter("gateway_engine_responses", text, ["release", "code"], _by_status(engines))
    text = "Requests that no engine of a release answered in time, and failed connections."
    names = {"rq_timeout": "timeout", "cx_connect_fail": "connection"}
    problems = {(one, names[what]): n for (one, what), n in engines.items() if what in names}
    yield counter("gateway_engine_problems", text, ["release", "problem"], problems)


def _matched(pattern: re.Pattern[str], numbers: Numbers) -> list[tuple[re.Match[str], float]]:
    found = ((pattern.fullmatch(name), value) for name, value in numbers.items())
    return [(match, float(value)) for match, value in found if match]


def _by_status(counts: Mapping[Any, float]) -> dict[tuple[str, ...], float]:
    """The counts of responses by status class, such as `5xx`."""
    found = ((labels, _STATUS.fullmatch(labels[-1])) for labels in counts)
    return {(*labels[:-1], match[1]): counts[labels] for labels, match in found if match}
