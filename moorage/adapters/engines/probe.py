"""Sending probes to an engine: a TCP connection or an HTTP request."""

from __future__ import annotations

from typing import Any

from moorage.adapters.engines.engine_http import NoAnswer, Question, ask_engine, connect
from moorage.common.strict_json import JsonError, NotJson
from moorage.readiness.protocol import Probe, Unreadable


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
