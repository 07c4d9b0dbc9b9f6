"""What a running engine answers: to probes, its served names, its metrics."""

from __future__ import annotations

from typing import Any

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
from moorage.readiness.protocol import Phase, Probe, Unreadable

LIST_SECONDS = 5.0
LISTING = Probe(phase=Phase.LISTED, deadline="warm_up_seconds", method="GET", path="/v1/models")


MOST_BYTES = 8 * MIB
"""Of metrics; an engine with hundreds of label sets has some MiB."""


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
