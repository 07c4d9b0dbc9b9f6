"""The routing table of gateways, read from the ledger."""

from __future__ import annotations

import json
from pathlib import Path

from moorage.adapters.ledger import Ledger
from moorage.adapters.secrets import read_secrets
from moorage.engines.api_key import key_secret
from moorage.engines.registry import ENGINES
from moorage.gateway.gateway import GatewayOptions
from moorage.gateway.routes import engine_key
from moorage.gateway.table import Backend, ModelRoute, RoutingTable
from moorage.releases.routing import Route

KEYS = "keys"


class TableReader:
    """Reads the table of one gateway.

    Args:
        folder: The gateway's folder; the keys of engines are written into it.
    """

    def __init__(self, ledger: Ledger, folder: Path) -> None:
        self._ledger, self._folder = ledger, folder / KEYS
        self._secrets: dict[str, str] = {}

    def read(self, options: GatewayOptions) -> RoutingTable:
        """The table as the ledger has it now.

        Raises:
            Failure: When the ledger does not answer, or the key of an engine cannot be read.
        """
        routes = self._ledger.routes.routes()
        serving = {route.release for route in routes}
        self._secrets = {name: key for name, key in self._secrets.items() if name in serving}
        return RoutingTable(
            models=tuple(self._model(route) for route in routes),
            keys=self._ledger.api_keys.all(),
            requires_key=options.requires_key,
        )

    def _model(self, route: Route) -> ModelRoute:
        file = self._key_file(route.release)
        backend = Backend(release=route.release, endpoints=route.endpoints, key_file=file)
        return ModelRoute(
            name=route.model,
            backends=(backend,) if route.endpoints else (),
            adapters=route.adapters,
            since=route.since,
        )

    def _key_file(self, release: str) -> str:
        """The file with the key of a release's engine, written now; empty = it asks for none."""
        if release not in self._secrets:
            self._secrets[release] = self._secret_of(release)
        secret = self._secrets[release]
        if not secret:
            return ""
        file = self._folder / f"{release}.json"
        if not file.exists():
            self._folder.mkdir(mode=0o700, exist_ok=True)
            document = json.dumps(engine_key(read_secrets([secret])[secret]))
            draft = file.with_suffix(".draft")
            draft.touch(mode=0o600)
            draft.write_text(document)
            draft.replace(file)
        return str(file)

    def _secret_of(self, release: str) -> str:
        record = self._ledger.releases.get(release).release
        plan = record.plan if record else None
        return key_secret(plan, ENGINES[plan.engine].api_key_variable) if plan else ""
