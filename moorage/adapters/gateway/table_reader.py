"""Reads the routing table of a gateway from the ledger."""

import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from moorage.adapters.gateway.envoy_folder import EnvoyFolder
from moorage.adapters.ledger import Ledger
from moorage.adapters.secrets import read_secrets
from moorage.common.failures import Failure
from moorage.engines.engine_secrets import engine_secret
from moorage.gateway.clusters import engine_key
from moorage.gateway.gateway import GatewayOptions
from moorage.gateway.table import ApiKey, Backend, ModelRoute, RoutingTable, split
from moorage.gateway.token_limits import end_of_day
from moorage.gateway.usage import spent
from moorage.inventory.access import is_loopback
from moorage.releases.routing import Route
from moorage.spec.keep_alive import keep_alive_seconds

KEYS = "keys"
RETRY_SECONDS = 60.0
"""How long to wait before reading a failed key again: that may start a Prefect server."""

ELSEWHERE = {
    "asleep": "it is asleep, and a gateway on another host wakes no model: `moorage load {}` does",
    "starting": "its next release starts in its place",
}
"""Why a gateway that cannot reach the doorman does not hold requests."""


class _KeyFile(NamedTuple):
    """The file with an engine's API key, or why it could not be written.

    Attributes:
        secret: Name of the secret with the key; empty = the engine requires none.
        path: Path of the file; empty = the engine requires no key, or it cannot be read.
        problem: Why the key cannot be read; empty = it can.
        read_at: When reading failed, in seconds of the clock.
    """

    secret: str = ""
    path: str = ""
    problem: str = ""
    read_at: float = 0.0


class TableReader:
    """Reads the table of one gateway.

    Args:
        place: Where Envoy reads its files and engines' keys.
        clock: Seconds, never decreasing.
    """

    def __init__(
        self, ledger: Ledger, place: EnvoyFolder, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ledger, self._place, self._clock = ledger, place, clock
        self._files: dict[str, _KeyFile] = {}

    def forget(self) -> None:
        """Forget the key files, so that the next read writes them again."""
        self._files.clear()

    def remove_key(self, release: str) -> None:
        """Remove the key file of a release that Envoy no longer knows."""
        self._files.pop(release, None)
        self._place.remove(_key_path(release))

    def read(self, options: GatewayOptions) -> RoutingTable:
        """Read the current table from the ledger.

        Raises:
            Failure: When the ledger does not answer.
        """
        routes, shared, asleep, making_room = self._ledger.routes.current()
        canaries = {route.model: route for route in shared}
        routed = {route.release for route in (*routes, *shared)}
        self._files = {name: file for name, file in self._files.items() if name in routed}
        keys = self._ledger.api_keys.all()
        now = datetime.now(UTC)
        used_up = self._spent(keys, now)
        return RoutingTable(
            models=(
                *(self._model(route, canaries.get(route.model)) for route in routes),
                *(self._held_route(route, "asleep") for route in asleep),
                *(self._held_route(route, "starting") for route in making_room),
            ),
            doorman=self._place.doorman,
            keys=keys,
            spent=used_up,
            day_ends=end_of_day(now) if used_up else None,
            requires_key=options.requires_key,
        )

    def _spent(self, keys: Iterable[ApiKey], now: datetime) -> tuple[str, ...]:
        limits = [(key.name, key.tokens) for key in keys if key.tokens]
        today = f"{now:%Y-%m-%d}"
        return spent(limits, self._ledger.usage.since(today)) if limits else ()

    def _model(self, route: Route, canary: Route | None) -> ModelRoute:
        file = self._key(route.release)
        problem = file.problem or self._unreachable(route)
        backend = None if problem else _backend(route, file)
        own = (backend,) if backend else ()
        backends = self._with_canary(backend, route, canary) if backend and canary else own
        return ModelRoute(
            name=route.model,
            backends=backends,
            keep_alive=keep_alive_seconds(route.keep_alive),
            problem=problem,
            timeout_seconds=route.timeout_seconds,
            adapters=route.adapters,
            since=route.since,
        )

    def _with_canary(self, own: Backend, route: Route, canary: Route) -> tuple[Backend, ...]:
        """Backends of a model with a canary; an unusable canary gets no requests."""
        assert canary.canary
        file = self._key(canary.release, canary.canary.key_secret)
        if self._unreachable(canary) or not (backend := _backend(canary, file)):
            return (own,)
        missing = tuple(sorted({*route.adapters} - {*canary.adapters}))
        same_key = file.secret == self._key(route.release).secret
        stand_in = route.release if same_key else ""
        known = backend.model_copy(update={"missing": missing, "stand_in": stand_in})
        return split(own, known, canary.canary.share)

    def _unreachable(self, route: Route) -> str:
        """Why requests cannot reach a release: its protocol, or another host's loopback address."""
        if route.other_protocol:
            return route.other_protocol
        hosts = (urlsplit(url).hostname or "" for url in route.endpoints)
        if self._place.is_here or not any(map(is_loopback, hosts)):
            return ""
        return "its engine listens for its own machine alone, and this gateway is on another one"

    def _held_route(self, route: Route, why: Literal["asleep", "starting"]) -> ModelRoute:
        """The route of a release that does not serve now; its requests wait, or are refused."""
        elsewhere = "" if self._place.doorman else ELSEWHERE[why].format(route.model)
        return ModelRoute(
            name=route.model,
            adapters=route.adapters,
            held=why,
            problem=route.other_protocol or elsewhere,
            timeout_seconds=route.timeout_seconds,
            since=route.since,
        )

    def _key(self, release: str, secret: str | None = None) -> _KeyFile:
        """The key file of a release; its record names the secret unless `secret` does."""
        known = self._files.get(release)
        if not known or (known.problem and self._clock() - known.read_at > RETRY_SECONDS):
            named = release_secret(self._ledger, release) if secret is None else secret
            known = self._files[release] = self._write(release, named)
        return known

    def _write(self, release: str, secret: str) -> _KeyFile:
        if not secret:
            return _KeyFile()
        try:
            key = read_secrets([secret])[secret]
        except Failure as failure:
            return _KeyFile(secret, problem=f"its key: {failure}", read_at=self._clock())
        path = _key_path(release)
        self._place.write(path, engine_key(key))
        return _KeyFile(secret, f"{self._place.root}/{path}")


def _key_path(release: str) -> str:
    return f"{KEYS}/{release}.json"


def _backend(route: Route, key: _KeyFile) -> Backend | None:
    if not route.endpoints or key.problem:
        return None
    return Backend(
        release=route.release,
        endpoints=route.endpoints,
        key_file=key.path,
        routing=route.routing,
    )


def release_secret(ledger: Ledger, release: str) -> str:
    """Name of the secret with the key of a release's engine; empty = it requires none."""
    plan = ledger.releases.get(release).plan
    return engine_secret(plan) if plan else ""
