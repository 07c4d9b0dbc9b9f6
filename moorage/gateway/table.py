"""What a gateway is to do at one moment: models with what answers for them, and keys."""

from datetime import datetime
from typing import Literal

from moorage.common.values import Value
from moorage.gateway.rates import Rate
from moorage.gateway.token_limits import TokenLimit
from moorage.spec.routing import Routing

WHOLE = 100
"""Weights of a model's backends together."""


class Backend(Value):
    """A release that answers for a model.

    Attributes:
        release: Its id; also the name of its cluster in Envoy.
        endpoints: Base URLs, one for each replica.
        weight: Its share of the requests, relative to the other backends of the model.
        key_file: File with the engine's own API key; empty = it asks for none.
        missing: Names of adapters of the model that it does not serve.
        stand_in: Release of the same model that answers where none of its engines does; it asks
            for the same key. Empty = none.
        routing: How a replica is chosen.
    """

    release: str
    endpoints: tuple[str, ...]
    weight: int = WHOLE
    key_file: str = ""
    missing: tuple[str, ...] = ()
    stand_in: str = ""
    routing: Routing = Routing.LEAST_REQUEST

    @property
    def is_prefix_aware(self) -> bool:
        """Whether the beginning of the prompt decides; of a single replica there is no choice."""
        return self.routing == Routing.PREFIX_AWARE and len(self.endpoints) > 1

    @property
    def cluster(self) -> str:
        """Name of the cluster that requests for it are routed to."""
        return f"{self.release},{self.stand_in}" if self.stand_in else self.release


def split(serving: Backend, canary: Backend, share: float) -> tuple[Backend, Backend]:
    """Both with their weights; each gets at least one request of a hundred.

    Args:
        serving: The release that serves.
        canary: The one that gets requests before it serves.
        share: Of the canary, from 0 to 1.
    """
    weight = min(max(round(share * WHOLE), 1), WHOLE - 1)
    first = serving.model_copy(update={"weight": WHOLE - weight})
    return first, canary.model_copy(update={"weight": weight})


class ModelRoute(Value):
    """A model name and what answers for it.

    Attributes:
        backends: What serves it; empty = nothing does.
        adapters: Names of LoRA adapters that are served in addition.
        held: Why its requests wait at the doorman: a request wakes it, or its next release starts;
            empty = they do not wait.
        keep_alive: Seconds without a request after which it is put to sleep; None = never.
        problem: Why nothing serves it though a release runs; empty = no reason.
        timeout_seconds: Longest time for a whole answer; 0 = no limit.
        since: When it was deployed, UTC.
    """

    name: str
    backends: tuple[Backend, ...] = ()
    adapters: tuple[str, ...] = ()
    held: Literal["asleep", "starting", ""] = ""
    keep_alive: float | None = None
    problem: str = ""
    timeout_seconds: int = 0
    since: datetime

    @property
    def names(self) -> tuple[str, ...]:
        """All names that a request may give."""
        return (self.name, *self.adapters)


class ApiKey(Value):
    """A key of a caller, as the ledger keeps it.

    Attributes:
        name: What people call it.
        digest: SHA-256 of the key, in hexadecimal.
        models: Models that it may ask; empty = all.
        rate: Requests that it may make, such as `60/min`; empty = no limit.
        tokens: Tokens that it may use on one day (UTC), such as `1M/day`; empty = no limit.
        created_at: UTC.
        expires: When it ends, UTC; None = never.
    """

    name: str
    digest: str
    models: tuple[str, ...] = ()
    rate: Rate = ""
    tokens: TokenLimit = ""
    created_at: datetime
    expires: datetime | None = None


class RoutingTable(Value):
    """Everything that a gateway has to know, as the ledger has it at one moment.

    Attributes:
        models: By name.
        keys: Callers.
        requires_key: Whether a request without a valid key is refused.
        spent: Names of the keys that have used up the tokens of their day.
        day_ends: When they may be used again, UTC; None = no key is spent.
        doorman: Socket of the service that wakes models; empty = there is none.
    """

    models: tuple[ModelRoute, ...] = ()
    keys: tuple[ApiKey, ...] = ()
    requires_key: bool = False
    spent: tuple[str, ...] = ()
    day_ends: datetime | None = None
    doorman: str = ""

    @property
    def releases(self) -> frozenset[str]:
        """The releases that get requests."""
        return frozenset(one.release for model in self.models for one in model.backends)
