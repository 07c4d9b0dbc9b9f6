"""What a running engine answers: to probes, its served names, its metrics."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from moorage.adapters.engines.engine_http import (
    NoAnswer,
    Question,
    Unusable,
    ask_engine,
    ask_engine_now,
    connect,
)
from moorage.common.strict_json import JsonError, NotJson
from moorage.common.units import MIB
from moorage.readiness.answers import Unreadable
from moorage.readiness.protocol import Phase, Probe

LIST_SECONDS = 5.0
LISTING = Probe(phase=Phase.LISTED, deadline="warm_up_seconds", method="GET", path="/v1/models")

MOST_BYTES = 8 * MIB
"""Limit of an answer with metrics. Hundreds of label sets take some MiB."""

MOST_LINE, MOST_LABEL_SETS, MOST_COUNT = 1024, 2000, 2**53
"""Limits of metrics: characters of a line, lines that count, and the value of one."""

UNREADABLE = (ValueError, LookupError, ArithmeticError)
"""Raised by the library for wrong lines. It documents none; a label without a name is an
`IndexError`, and a time stamp of 400 digits an `OverflowError`."""


async def ask(
    endpoint: str, probe: Probe, timeout_seconds: float, api_key: str = ""
) -> tuple[int, Any]:
    """Send a probe.

    Args:
        endpoint: Base URL of the engine.
        probe: What to ask.
        timeout_seconds: How long all of it may take.
        api_key: Sent as a bearer token when there is one.

    Returns:
        HTTP status and answer: JSON where it is JSON, `Unreadable` where it is JSON beyond the
        limits, else text. Status 0 = no answer, with the reason in its place; a TCP connection
        that is accepted counts as 200.
    """
    try:
        if not probe.method:
            await connect(endpoint, timeout_seconds)
            return 200, "accepted"
        question = Question(endpoint + probe.path, probe.method, probe.body, api_key=api_key)
        answer = await ask_engine(question, timeout_seconds)
    except NoAnswer as error:
        return 0, str(error)
    try:
        return answer.status, answer.json()
    except NotJson:
        return answer.status, answer.text
    except JsonError as error:
        return answer.status, Unreadable(why=str(error))


async def served_names(endpoint: str, api_key: str = "") -> frozenset[str] | None:
    """The names under which a server answers.

    Args:
        endpoint: Base URL of the server.
        api_key: Its key, where it has one.

    Returns:
        The names; None when it does not list them.
    """
    status, answer = await ask(endpoint, LISTING, LIST_SECONDS, api_key)
    entries = answer.get("data") if status == 200 and isinstance(answer, dict) else None
    if not isinstance(entries, list):
        return None
    return frozenset(str(entry.get("id")) for entry in entries if isinstance(entry, dict))


def read_metrics(url: str, timeout_seconds: float) -> str:
    """The text of an engine's metrics; empty when it sends anything else.

    Args:
        url: Of its metrics.
        timeout_seconds: How long all of it may take.

    Raises:
        TimeoutError: It did not answer in time.
        ConnectionError: Nothing answers there.
    """
    try:
        answer = ask_engine_now(Question(url), timeout_seconds, MOST_BYTES)
    except Unusable:
        return ""
    # Only names and numbers count. Text beyond ASCII would take several times the memory.
    return answer.content.decode("ascii", "replace") if answer.status == 200 else ""


def metrics_total(text: str, names: Sequence[str]) -> int | None:
    """The sum of some counts over all label sets, of which an engine has one for each rank.

    Only lines of these names reach the library's parser, and only short ones. It takes seconds and
    100 MiB for a whole answer, minutes for one long line, and refuses an answer with
    one wrong line.

    Args:
        text: Metrics in Prometheus' text format.
        names: Names of the metrics to add up.

    Returns:
        The sum; None when all of them are missing, or one is no count, such as `NaN`.
    """
    wanted = "|".join(map(re.escape, names))
    found = re.finditer(rf"^(?:{wanted})[{{ \t].*$", text, re.MULTILINE)
    try:
        counts = [_value(match) for match in islice(found, MOST_LABEL_SETS)]
    except UNREADABLE:
        return None
    return sum(counts) if counts else None


def _value(line: re.Match[str]) -> int:
    """The value in the line of a metric.

    Raises:
        ValueError: It is no count, or the line is too long.
    """
    if line.end() - line.start() <= MOST_LINE:
        ((sample,),) = (family.samples for family in text_string_to_metric_families(line[0]))
        if 0 <= sample.value <= MOST_COUNT:
            return int(sample.value)
    raise ValueError
