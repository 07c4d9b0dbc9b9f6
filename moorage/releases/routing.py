"""The routes of model names: the endpoints for requests.

A route changes in one step, so that no request goes to two releases or to none. The ledger stores
the routes (`adapters/ledger/routes.py`); clients and gateways look up the endpoints there.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from moorage.common.values import Value
from moorage.engines.workload import OPENAI
from moorage.releases.states import ReleaseState
from moorage.spec.keep_alive import NEVER
from moorage.spec.routing import Routing


class Canary(Value):
    """A release that gets requests before it serves.

    Attributes:
        share: Its share of the model's requests, from 0 to 1.
        key_secret: Name of the secret with its engines' API key; empty = they need no key.
    """

    share: float
    key_secret: str = ""


class Route(Value):
    """A model name and the release that serves it.

    Attributes:
        state: `running`, or `unreachable`: its host does not answer, but it may still serve.
        endpoints: Base URLs, one for each replica; requests may go to any of them.
        base_path: Base path of their HTTP interface; gateways route `/v1` only.
        adapters: Names of LoRA adapters that every replica serves in addition to the model.
        since: When the release began, UTC.
        keep_alive: How long it stays loaded without requests, from its spec.
        timeout_seconds: Longest time for a complete answer; 0 = no limit.
        canary: Its share of requests before it serves; None = it serves, or sleeps.
        makes_room: Whether it stopped for its successor.
    """

    model: str
    release: str
    state: ReleaseState
    endpoints: tuple[str, ...]
    base_path: str = OPENAI
    adapters: tuple[str, ...] = ()
    since: datetime
    keep_alive: str = NEVER
    routing: Routing = Routing.LEAST_REQUEST
    timeout_seconds: int = 0
    canary: Canary | None = None
    makes_room: bool = False

    @property
    def other_protocol(self) -> str:
        """Why gateways send no requests there, by its protocol; empty = it speaks OpenAI's."""
        if self.base_path == OPENAI:
            return ""
        return f"its engine speaks another protocol than OpenAI's, under {self.base_path}"


def models_listing(routes: Iterable[Route]) -> dict[str, Any]:
    """The routes in the format of `GET /v1/models` of OpenAI's API.

    An adapter is listed as a model with its base model as `parent`, as in vLLM.
    """
    return {"object": "list", "data": [entry for route in routes for entry in _entries(route)]}


def _entries(route: Route) -> list[dict[str, Any]]:
    common = {
        "object": "model",
        "created": int(route.since.timestamp()),
        "owned_by": "moorage",
        "release": route.release,
        "state": route.state,
        "endpoints": [f"{endpoint}{route.base_path}" for endpoint in route.endpoints],
    }
    model = {"id": route.model, **common}
    return [model, *({"id": name, **common, "parent": route.model} for name in route.adapters)]
