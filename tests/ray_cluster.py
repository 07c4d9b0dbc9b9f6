"""A real Ray cluster on this machine, with its dashboard and Serve on free ports."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.prefect_server import free_port

MARK = "MOORAGE_TEST_RAY"
START_SECONDS = 180.0
SETTLE_SECONDS = 180.0
APPLICATIONS = "/api/serve/applications/"
OBJECT_STORE_BYTES = 100_000_000
APPS = Path(__file__).parent / "ray_apps"

QUIET = {
    "RAY_SERVE_CONTROL_LOOP_INTERVAL_S": "0.5",
    "RAY_SERVE_METRICS_EXPORT_INTERVAL_MS": "10000",
    "RAY_enable_metrics_collection": "0",
}
"""Settings that save processor time: no metrics, and a slower control loop."""


def ray_program() -> str | None:
    """The `ray` of this environment."""
    return shutil.which("ray", path=str(Path(sys.executable).parent))


class RayCluster:
    """One head node.

    Args:
        gpus: Number of accelerators that it claims to have.
        token: The token of its dashboard.
    """

    def __init__(self, gpus: int, token: str) -> None:
        # Ray's sockets are in this folder, and a socket's path must be short.
        self.folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
        self.dashboard = f"http://127.0.0.1:{free_port()}"
        self.serve_port = free_port()
        self.serve = f"http://127.0.0.1:{self.serve_port}"
        self._gpus = gpus
        self._authorization = {"Authorization": f"Bearer {token}"}
        self._environment = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token}

    def start(self) -> None:
        program = ray_program()
        assert program
        command = [
            *(program, "start", "--head", "--disable-usage-stats", "--include-dashboard=true"),
            *("--node-ip-address=127.0.0.1", f"--port={free_port()}"),
            f"--dashboard-port={self.dashboard.rpartition(':')[2]}",
            *("--dashboard-host=127.0.0.1", "--num-cpus=1", f"--num-gpus={self._gpus}"),
            *(f"--object-store-memory={OBJECT_STORE_BYTES}", f"--temp-dir={self.folder}"),
            f"--dashboard-agent-listen-port={free_port()}",
        ]
        subprocess.run(
            command,
            env={
                **os.environ,
                **QUIET,
                **self._environment,
                MARK: self.folder,
                "PYTHONPATH": str(APPS),
                "HF_HUB_OFFLINE": "1",
            },
            check=True,
            capture_output=True,
            timeout=START_SECONDS,
        )
        self._until_it_answers()

    def fleet(self, **more: object) -> dict[str, object]:
        """Its entry in a fleet file."""
        return {"dashboard": self.dashboard, "serve": self.serve, **more}

    def put(self, *applications: dict[str, Any], **whole: object) -> None:
        """Deploy applications as another user would, and wait until all of them run."""
        config = {"applications": list(applications), **whole}
        config["http_options"] = {"host": "127.0.0.1", "port": self.serve_port}
        httpx.put(
            self.dashboard + APPLICATIONS,
            json=config,
            headers=self._authorization,
            timeout=START_SECONDS,
        ).raise_for_status()
        names = {application["name"] for application in applications}
        give_up = time.monotonic() + SETTLE_SECONDS
        while self.statuses() != dict.fromkeys(names, "RUNNING"):
            assert time.monotonic() < give_up, self.statuses()
            time.sleep(0.3)

    def details(self) -> dict[str, Any]:
        answer = httpx.get(
            self.dashboard + APPLICATIONS, headers=self._authorization, timeout=START_SECONDS
        )
        details: dict[str, Any] = answer.raise_for_status().json()
        return details

    def statuses(self) -> dict[str, str]:
        return {name: app["status"] for name, app in self.details()["applications"].items()}

    def config(self, name: str) -> dict[str, Any]:
        config: dict[str, Any] = self.details()["applications"][name]["deployed_app_config"]
        return config

    def kill(self) -> None:
        """Kill all its processes at once, as a crash would."""
        for process in self._processes():
            process.kill()
        psutil.wait_procs(self._processes(), timeout=5)

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _processes(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK) == self.folder:
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def _until_it_answers(self) -> None:
        give_up = time.monotonic() + START_SECONDS
        while True:
            try:
                self.details()
                return
            except httpx.HTTPError:
                assert time.monotonic() < give_up, "Ray's dashboard does not come up"
                time.sleep(0.3)
