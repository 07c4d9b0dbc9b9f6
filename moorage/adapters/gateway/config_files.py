"""The configuration files of a gateway, each replaced atomically."""

import json
import time
from collections.abc import Callable, Collection, Set
from functools import cache
from importlib.resources import files
from pathlib import Path

from pydantic import TypeAdapter

from moorage.adapters.files.safe_files import read_whole, write_private
from moorage.adapters.gateway.admin import Admin
from moorage.adapters.gateway.envoy_folder import EnvoyFolder
from moorage.adapters.gateway.pem import read_pem
from moorage.common.failures import Failure
from moorage.common.units import MIB
from moorage.gateway.envoy import CONFIG_FOLDER, bootstrap
from moorage.gateway.gateway import GatewayOptions
from moorage.gateway.scripts import SCRIPTS
from moorage.gateway.table import RoutingTable
from moorage.gateway.transition import Step, clusters_step, listener_step, steps

TABLES_FILE = "tables.json"
BOOTSTRAP_FILE = "bootstrap.json"
LARGEST_TABLE = 64 * MIB
QUIET_SECONDS = 3.0
"""How long a release must have no request in flight before its cluster is removed."""

_TABLES = TypeAdapter(tuple[RoutingTable, ...])


class ConfigFiles:
    """The configuration files of one gateway. Only one process at a time may write them.

    Args:
        folder: The gateway's folder on this machine, which keeps the tables in force.
        place: Where Envoy reads its files.
        clock: Seconds, never decreasing.
    """

    def __init__(
        self, folder: Path, place: EnvoyFolder, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._own, self._place = folder.absolute(), place
        self._tables: tuple[RoutingTable, ...] | None = None
        self._pem: tuple[str, str] | None = None
        self._clock = clock
        self._busy_at: dict[str, float] = {}

    @property
    def bootstrap(self) -> str:
        """Path of the file that Envoy starts with, as Envoy sees it."""
        return f"{self._place.root}/{BOOTSTRAP_FILE}"

    def are_there(self) -> bool:
        """Whether Envoy has a file to start with; its volume may have been removed."""
        return self._place.state(BOOTSTRAP_FILE) is not None

    def forget(self) -> None:
        """Forget all tables."""
        self._keep(())

    def listen(self, options: GatewayOptions, admin: Admin | None) -> None:
        """Switch to other listener options.

        If the new options require API keys, the routes require them before the listener changes.

        Args:
            admin: The running Envoy, to wait for; None = Envoy does not run.

        Raises:
            Failure: `GATEWAY_REFUSED` when Envoy rejects them, for example for a port in use.
        """
        self._place.write(BOOTSTRAP_FILE, bootstrap(self._place.root))
        self._place.prepare()
        tables = self.tables()
        if tables and options.requires_key and not tables[-1].requires_key:
            self.apply(tables[-1].model_copy(update={"requires_key": True}), admin)
        pem = read_pem(options)
        self._take(listener_step(options, self._place.root, pem), admin)
        self._pem = pem

    def renew_certificate(self, options: GatewayOptions, admin: Admin) -> None:
        """Take over the certificate's files once they have been renewed, without a pause.

        Raises:
            Failure: `GATEWAY_REFUSED`; the former certificate stays in use.
        """
        if not options.tls_certificate or read_pem(options) == self._pem:
            return
        try:
            self.listen(options, admin)
        except Failure:  # else an Envoy that starts later would not listen at all
            self._write(listener_step(options, self._place.root, self._pem))
            raise

    def tables(self) -> tuple[RoutingTable, ...]:
        """Tables whose clusters Envoy still has, oldest first; the last table is in force."""
        if self._tables is None:
            try:
                content = read_whole(self._own / TABLES_FILE, LARGEST_TABLE)
                self._tables = _TABLES.validate_json(content)
            except FileNotFoundError:
                self._tables = ()
        return self._tables

    def apply(self, table: RoutingTable, admin: Admin | None) -> None:
        """Switch to a table, in an order in which no request meets a route without a cluster.

        Clusters of earlier tables stay until `prune`, since requests to them may be in flight.

        Args:
            admin: The running Envoy, to wait for at each step; None = Envoy does not run.

        Raises:
            Failure: `GATEWAY_REFUSED` when Envoy rejects it; the earlier tables are restored.
        """
        before = self.tables()
        self._keep((*before, table))
        try:
            for step in steps(before, table, scripts_code()):
                self._take(step, admin)
        except Failure:
            self._restore(before)
            raise

    def prune(
        self, admin: Admin, on_removed: Callable[[str], None] = lambda _: None
    ) -> dict[str, int]:
        """Remove clusters of releases that get no new requests and had none in flight lately.

        A request that waits for its retry counts as in flight nowhere, but needs its cluster.

        Args:
            on_removed: Called with each release whose cluster was removed; again if it fails.

        Returns:
            Requests in flight by release, for the releases that get no new requests.
        """
        *before, table = self.tables() or (RoutingTable(),)
        if not before:
            return {}
        serving = table.releases
        closed = {release for one in before for release in one.releases} - serving
        active = admin.active_requests()
        draining = {release: n for release in sorted(closed) if (n := active.get(release, 0))}
        recent = self._recently_busy(closed, draining)
        kept = [one for one in before if recent & one.releases]
        if len(kept) < len(before):
            self._take(clusters_step((*kept, table)), admin)
            for release in closed.difference(*(one.releases for one in kept)):
                on_removed(release)
            self._keep((*kept, table))
        return draining

    def _recently_busy(self, closed: Set[str], draining: Collection[str]) -> set[str]:
        """The closed releases that were busy, or still open, in the last `QUIET_SECONDS`."""
        now = self._clock()
        self._busy_at = {
            one: now if one in draining else self._busy_at.get(one, now) for one in closed
        }
        return {one for one, at in self._busy_at.items() if now - at < QUIET_SECONDS}

    def _keep(self, tables: tuple[RoutingTable, ...]) -> None:
        self._tables = tables
        document = json.dumps(_TABLES.dump_python(tables, mode="json"))
        write_private(self._own / TABLES_FILE, document, over=True)

    def _restore(self, tables: tuple[RoutingTable, ...]) -> None:
        """Write the tables that Envoy last accepted, so that a restarted Envoy accepts them."""
        self._keep(tables)
        if tables:
            *before, table = tables
            for step in steps(before, table, scripts_code()):
                self._write(step)

    def _take(self, step: Step, admin: Admin | None) -> None:
        rejections = admin.rejections(step.file) if admin else 0
        self._write(step)
        if admin:
            admin.await_version(step.file, step.version, rejections)

    def _write(self, step: Step) -> None:
        self._place.write(f"{CONFIG_FOLDER}/{step.file}", step.document)


@cache
def scripts_code() -> dict[str, str]:
    """The Lua scripts, by name."""
    folder = files("moorage.gateway")
    return {name: folder.joinpath(f"{name}.lua").read_text() for name in SCRIPTS}
