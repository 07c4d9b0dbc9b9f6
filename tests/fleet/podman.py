"""One Podman of a test fleet, with the socket that speaks Docker's API."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import docker

from tests.fleet.commands import mounts_below, run
from tests.fleet.network import Link

START_SECONDS = 30

CONTAINERS = """\
[containers]
default_ulimits = ["nofile=16384:16384", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
"""
"""What it takes where there is no systemd; not every root may raise limits, which it does else."""

REGISTRY = '[[registry]]\nlocation = "{}"\ninsecure = true\n'


def missing() -> str:
    """Why no Podman can be started here; empty = one can."""
    absent = [name for name in ("podman", "catatonit") if not shutil.which(name)]
    return f"{', '.join(absent)} not installed (see .ci/run)" if absent else ""


class Podman:
    """A Podman in a namespace of its own. It is used as `Daemon` is.

    Args:
        name: Of the host.
        link: Where it is.
        folder: Where it keeps everything.
        insecure: Registries that it takes without TLS.
    """

    def __init__(self, name: str, link: Link, folder: Path, *insecure: str) -> None:
        self.name, self.link, self.folder = name, link, folder
        self.socket = folder / "podman.sock"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "containers.conf").write_text(CONTAINERS)
        (folder / "registries.conf").write_text("".join(map(REGISTRY.format, insecure)))
        self._process: subprocess.Popen[bytes] | None = None

    def client(self, timeout: int = 60) -> docker.DockerClient:
        """Through its socket, which no cut cable concerns."""
        return docker.DockerClient(
            base_url=f"unix://{self.socket}", timeout=timeout, version="1.41"
        )

    def start(self) -> None:
        """Start its service and wait until it answers."""
        words = [*self._words, "system", "service", "--time=0", f"unix://{self.socket}"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                words,
                # Its monitors leave a file where they are when the kernel kills a container.
                cwd=self.folder,
                env=self._environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            with suppress(Exception):
                if self.client(5).ping():
                    return
            time.sleep(0.1)
        raise RuntimeError((self.folder / "log").read_text()[-2000:])

    def kill(self) -> None:
        """SIGKILL to the service; containers do not notice, they have monitors of their own."""
        self._end(signal.SIGKILL)

    def load(self, *images: str) -> None:
        """Give it images of this machine's own Docker."""
        for image in images:
            with subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE) as saved:
                subprocess.run(
                    [*self._words, "load"],
                    env=self._environment,
                    stdin=saved.stdout,
                    capture_output=True,
                    check=True,
                )

    def close(self) -> None:
        """Remove its containers and images, and end it."""
        with suppress(Exception):
            for container in self.client(20).containers.list(all=True):
                container.remove(force=True)
        self._end(signal.SIGTERM)
        for mounted in mounts_below(self.folder):
            run("umount", "-l", mounted, check=False)

    @property
    def _words(self) -> list[str]:
        places = ["--root", str(self.folder / "root"), "--runroot", str(self.folder / "run")]
        return [*self.link.entering, "podman", *places]

    @property
    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "CONTAINERS_CONF": str(self.folder / "containers.conf"),
            "CONTAINERS_REGISTRIES_CONF": str(self.folder / "registries.conf"),
            # For its version it asks dpkg whose files its helpers are, which takes long to find.
            "DPKG_ADMINDIR": str(self.folder),
        }

    def _end(self, number: signal.Signals) -> None:
        if self._process:
            self._process.send_signal(number)
            self._process.wait(30)
            self._process = None
