"""What a server lists: the model's name and those of its adapters."""

from __future__ import annotations

from moorage.adapters.engines.probe import ask
from moorage.readiness.protocol import Phase, Probe

LIST_SECONDS = 5.0
LISTING = Probe(phase=Phase.LISTED, deadline="warm_up_seconds", method="GET", path="/v1/models")


async def served_names(endpoint: str, api_key: str = "") -> frozenset[str] | None:
    """The names under which a server answers.

    Args:
        endpoint: Base URL of the server.
        api_key: Its key, where it has one.

    Returns:
        The names; None when it does not tell.
    """
    status, answer = await ask(endpoint, LISTING, LIST_SECONDS, api_key)
    entries = answer.get("data") if status == 200 and isinstance(answer, dict) else None
    if not isinstance(entries, list):
        return None
    return frozenset(str(entry.get("id")) for entry in entries if isinstance(entry, dict))
