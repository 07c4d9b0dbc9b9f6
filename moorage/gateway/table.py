"""The routing table of a gateway: models with their backends, and API keys."""

from datetime import datetime
from typing import Literal

from pydantic import field_validator

from moorage.common.values import Value
from moorage.gateway.rates import Rate
from moorage.gateway.token_limits import TokenLimit
from moorage.spec.routing import Routing

WHOLE = 100
"""Sum of the weights of a model's backends."""


class Backend(Value):
    """A release that answers for a model.

    Attributes:
        release: Id of the release; also the name of its cluster in Envoy.
        endpoints: Base URLs, one for each replica.
        weight: Its share of the requests, relative to the other backends of the model.
        key_file: File with the engine's own API key; empty = the engine requires none.
        missing: Names of the model's adapters that it does not serve.
        stand_in: Fallback release of the same model with the same engine key, for when none of its
            engines answers; empty = none.
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
        """Whether a prompt's beginning decides on the replica; False for a single replica."""
        return self.routing == Routing.PREFIX_AWARE and len(self.endpoints) > 1

    @property
    def cluster(self) -> str:
        """Name of the cluster to which its requests are routed."""
        return f"{self.release},{self.stand_in}" if self.stand_in else self.release


def split(serving: Backend, canary: Backend, share: float) -> tuple[Backend, Backend]:
    """Both backends with weights; each gets at least one request of a hundred.

    The canary is a release that gets a share of the requests, from 0 to 1, before it serves.
    """
    weight = min(max(round(share * WHOLE), 1), WHOLE - 1)
    first = serving.model_copy(update={"weight": WHOLE - weight})
    return first, canary.model_copy(update={"weight": weight})


class ModelRoute(Value):
    """A model name and the backends that answer for it.

    Attributes:
        backends: Releases that serve it; empty = none.
        adapters: Names of LoRA adapters that are also served.
        held: Why its requests wait at the doorman: it is asleep until a request wakes it, or its
            next release starts; empty = they do not wait.
        keep_alive: Seconds without a request after which it is put to sleep; None = never.
        problem: Why requests cannot be routed to it or wait for it; empty = no problem.
        timeout_seconds: Limit for a whole answer; 0 = no limit.
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
    """A caller's API key, as the ledger stores it.

    Attributes:
        name: Name of the key for people.
        digest: SHA-256 of the key, in hexadecimal.
        models: Models that it may use; empty = all.
        rate: Rate of its requests, such as `60/min`; empty = no limit.
        tokens: Tokens that it may use in one day (UTC), such as `1M/day`; empty = no limit.
        created_at: UTC.
        expires: When it expires, UTC; None = never.
    """

    name: str
    digest: str
    models: tuple[str, ...] = ()
    rate: Rate = ""
    tokens: TokenLimit = ""
    created_at: datetime
    expires: datetime | None = None


class RoutingTable(Value):
    """Models and callers of a gateway, as the ledger has them at one moment.

    Attributes:
        models: Routes of the models.
        keys: API keys of callers.
        requires_key: Whether a request without a valid key is refused.
        spent: Names of the keys that have used up their tokens of the day.
        day_ends: When spent keys may be used again, UTC; None = no key is spent.
        doorman: Socket of the service that wakes models; empty = none.
    """

    models: tuple[ModelRoute, ...] = ()
    keys: tuple[ApiKey, ...] = ()
    requires_key: bool = False
    spent: tuple[str, ...] = ()
    day_ends: datetime | None = None
    doorman: str = ""

    @field_validator("models")
    @classmethod
    def _distinct(cls, models: tuple[ModelRoute, ...]) -> tuple[ModelRoute, ...]:
        """Leave out adapters whose name another model or adapter has.

        Else a request would reach one model with the rights of a key for another.
        """
        taken, kept = {one.name for one in models}, []
        for one in models:
            own = tuple(name for name in one.adapters if name not in taken)
            taken.update(own)
            kept.append(one.model_copy(update={"adapters": own}))
        return tuple(kept)

    @property
    def releases(self) -> frozenset[str]:
        """The releases that get requests."""
        return frozenset(one.release for model in self.models for one in model.backends)
