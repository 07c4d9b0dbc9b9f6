"""Who answers for a model name now, and the seam behind which that changes.

A router decides where requests for a name go. Its switch is one step: before it everybody is sent
to the old release, after it to the new one, and at no moment to both or to neither. The ledger is
one (`adapters/ledger/releases.py`): a client that looks the endpoint up is its own gateway.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Protocol

from moorage.common.values import Value
from moorage.releases.release import Release
from moorage.releases.states import ReleaseState


class Route(Value):
    """A model name and what answers for it.

    Attributes:
        model: The name.
        release: The release that serves it.
        state: `running`, or `unreachable`: its host does not answer, but it may still serve.
        endpoints: Base URLs, one for each replica; requests may go to any of them.
        adapters: Names of LoRA adapters that every replica serves in addition to the model.
        since: When the release was begun, UTC.
    """

    model: str
    release: str
    state: ReleaseState
    endpoints: tuple[str, ...]
    adapters: tuple[str, ...] = ()
    since: datetime


class Router(Protocol):
    """Where requests for model names go."""

    def switch(self, release: Release) -> Release:
        """In one step: requests for its model go to a release, and no more to the one it replaces.

        Args:
            release: One that was proven to answer, with its record.

        Returns:
            The record as it was kept.

        Raises:
            Failure: When the switch was not made; then nothing has changed.
        """
        ...

    def close(self, release: str, cause: str) -> None:
        """Send nobody to a release any more, though no other one answers in its place."""
        ...

    def reopen(self, release: str, cause: str) -> None:
        """Send everybody to a release again that was closed."""
        ...

    def routes(self, model: str = "") -> tuple[Route, ...]:
        """Who answers now, by name; for one model one or none."""
        ...


def models_listing(routes: Iterable[Route]) -> dict[str, Any]:
    """The names as `GET /v1/models` of OpenAI's API lists them, with what answers for each.

    An adapter is a model of its own there, with the name of its model as `parent`, as in vLLM.
    """
    return {"object": "list", "data": [entry for route in routes for entry in _entries(route)]}


def _entries(route: Route) -> list[dict[str, Any]]:
    common = {
        "object": "model",
        "created": int(route.since.timestamp()),
        "owned_by": "moorage",
        "release": route.release,
        "state": route.state,
        "endpoints": [f"{endpoint}/v1" for endpoint in route.endpoints],
    }
    model = {"id": route.model, **common}
    return [model, *({"id": name, **common, "parent": route.model} for name in route.adapters)]
