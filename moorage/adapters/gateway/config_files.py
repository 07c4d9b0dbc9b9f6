"""The files of a gateway's configuration, renamed into place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from moorage.adapters.files.safe_files import read_whole
from moorage.adapters.gateway.admin import Admin
from moorage.common.units import MIB
from moorage.gateway.envoy import LISTENERS_FILE, bootstrap, discovery, listeners
from moorage.gateway.options import GatewayOptions
from moorage.gateway.table import RoutingTable
from moorage.gateway.transition import Step, steps

TABLES_FILE = "tables.json"
BOOTSTRAP_FILE = "bootstrap.json"
LARGEST_TABLE = 64 * MIB
TAKE_SECONDS = 5.0
"""How long Envoy may take to work with a file; it needs a few milliseconds."""

_TABLES = TypeAdapter(tuple[RoutingTable, ...])


class ConfigFiles:
    """The folder of one gateway.

    Args:
        folder: Only its user may read it: it has the keys of engines.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self._config = self.folder / "config"

    def prepare(self, options: GatewayOptions) -> Path:
        """Write what Envoy starts with, and return the bootstrap file."""
        self._config.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        found = listeners(options, str(self.folder))
        _rename_into(self._config / LISTENERS_FILE, discovery("1", found))
        file = self.folder / BOOTSTRAP_FILE
        _rename_into(file, bootstrap(str(self.folder)))
        return file

    def tables(self) -> tuple[RoutingTable, ...]:
        """The table in force, and after it those whose transition was interrupted."""
        try:
            content = read_whole(self.folder / TABLES_FILE, LARGEST_TABLE)
        except FileNotFoundError:
            return ()
        return _TABLES.validate_json(content)

    def apply(self, table: RoutingTable, admin: Admin | None) -> None:
        """Go over to a table, in an order in which no request meets a route without a cluster.

        When this is interrupted, the next call keeps the clusters of all tables until its own
        routes are in force. Callers hold the gateway's lock, and read the table under it.

        Args:
            table: The table.
            admin: The running Envoy, which is waited for at each step; None = it does not run.

        Raises:
            Failure: `GATEWAY_REFUSED` when Envoy does not take it.
        """
        before = self.tables()
        self._keep((*before, table))
        for step in steps(before, table):
            self._take(step, admin)
        self._keep((table,))

    def _keep(self, tables: tuple[RoutingTable, ...]) -> None:
        _rename_into(self.folder / TABLES_FILE, _TABLES.dump_python(tables, mode="json"))

    def _take(self, step: Step, admin: Admin | None) -> None:
        rejections = admin.rejections(step.file) if admin else 0
        _rename_into(self._config / step.file, step.document)
        if admin:
            admin.await_version(step.file, step.version, rejections, TAKE_SECONDS)


def _rename_into(path: Path, document: Any) -> None:
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(json.dumps(document))
    draft.chmod(0o600)
    draft.replace(path)
