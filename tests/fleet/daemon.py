"""One Docker daemon of a test fleet: started, stopped, killed, frozen."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import docker

from tests.fleet.commands import mounts_below, run
from tests.fleet.layers import can_be_linked, link_image
from tests.fleet.network import Link

START_SECONDS = 30
ATTEMPTS = 4
TLS_PORT = 2376
STOPPED = frozenset("TtXZ")
"""States of threads that do nothing any more, as /proc has them."""


class Daemon:
    """A daemon in a namespace of its own.

    Args:
        name: Also its host name.
        link: Where it is.
        folder: Where it keeps everything; its images are gone with it.
        certificates: Folder with those of its server.
        net: Addresses whose registries it takes without TLS.
        live_restore: Whether containers outlive it.
        disk_bytes: Size of a disk of its own; 0 = it shares this machine's.
    """

    def __init__(
        self,
        name: str,
        link: Link,
        folder: Path,
        certificates: Path,
        net: str,
        *,
        live_restore: bool = True,
        disk_bytes: int = 0,
    ) -> None:
        self.name, self.link, self.folder = name, link, folder
        self.socket = folder / "docker.sock"
        self._certificates, self._net, self._live_restore = certificates, net, live_restore
        self._data = folder / "data"
        self._data.mkdir(parents=True)
        if disk_bytes:
            _mount_disk(folder / "disk", self._data, disk_bytes)
        self._process: subprocess.Popen[bytes] | None = None

    def client(self, timeout: int = 60) -> docker.DockerClient:
        """Through its socket, which no cut cable concerns."""
        return docker.DockerClient(base_url=f"unix://{self.socket}", timeout=timeout)

    def start(self) -> None:
        """Start it and wait until it answers.

        Right after a kill it fails once or twice, as long as its containerd is still going away.
        """
        for _ in range(ATTEMPTS):
            self._clear_traces()
            self._process = self._spawn()
            if self.answers(START_SECONDS):
                return
            self.kill()
            time.sleep(1)
        log = (self.folder / "log").read_text()
        raise RuntimeError(f"{self.name} did not come up:\n{log[-2000:]}")

    def start_with(self, *images: str) -> None:
        """Start it with images of this machine's own daemon."""
        linked = can_be_linked(self._data)
        for image in images if linked else ():
            link_image(image, self._data)
        self.start()
        if not linked:
            self.load(*images)

    def stop(self) -> None:
        """SIGTERM: containers stop too, unless they outlive it."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """It takes connections and answers nothing, from the return of this call on."""
        os.kill(self._number(), signal.SIGSTOP)
        tasks = Path("/proc", str(self._number()), "task")
        while any(_state(task) not in STOPPED for task in tasks.iterdir()):
            time.sleep(0.01)

    def thaw(self) -> None:
        """It goes on."""
        os.kill(self._number(), signal.SIGCONT)

    def load(self, *images: str) -> None:
        """Give it images of this machine's own daemon, while it runs."""
        for image in images:
            with subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE) as saved:
                subprocess.run(
                    ["docker", "-H", f"unix://{self.socket}", "load", "--quiet"],
                    stdin=saved.stdout,
                    capture_output=True,
                    check=True,
                )

    def link_images(self, *images: str) -> None:
        """Give it images of this machine's own daemon; it is restarted where it lacks one."""
        lacking = [image for image in images if not _has(self, image)]
        if lacking:
            self.stop()
            self.start_with(*lacking)

    def clear(self, *images: str) -> None:
        """Remove its containers, volumes and networks, and all images but some."""
        client = self.client()
        for container in client.containers.list(all=True):
            container.remove(force=True, v=True)
        for volume in client.volumes.list():
            volume.remove(force=True)
        client.networks.prune()
        kept = {client.images.get(name).id for name in images if _has(self, name)}
        for image in client.images.list(all=True):
            if image.id not in kept:
                image.remove(force=True)

    def close(self) -> None:
        """Remove its containers, end it, and take its disk away."""
        with suppress(Exception):
            self.thaw()
        with suppress(Exception):
            for container in self.client(20).containers.list(all=True):
                container.remove(force=True)
        self.stop()
        self._clear_traces()
        for mounted in mounts_below(self.folder):
            run("umount", "-l", mounted, check=False)

    def _spawn(self) -> subprocess.Popen[bytes]:
        network = int(self.link.address.rpartition(".")[2])
        options = [
            *("--data-root", self._data, "--exec-root", self.folder / "exec"),
            *(
                "--pidfile",
                self.folder / "docker.pid",
                "--cgroup-parent",
                f"/{self.link.namespace}",
            ),
            *("-H", f"unix://{self.socket}", "-H", f"tcp://{self.link.address}:{TLS_PORT}"),
            "--tlsverify",
            *("--tlscacert", self._certificates / "ca.pem"),
            *("--tlscert", self._certificates / "cert.pem"),
            *("--tlskey", self._certificates / "key.pem"),
            *("--bip", f"172.31.{network}.1/24", "--insecure-registry", self._net),
            *("--label", f"worker={self.name}", "--log-level", "warn"),
        ]
        if self._live_restore:
            options.append("--live-restore")
        words = ["dockerd", *map(str, options)]
        # A name of its own: daemons of one machine tell the same one, and the same identity.
        named = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', self.name, *words]
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [*self.link.entering, *named],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def answers(self, seconds: float) -> bool:
        """Whether it does, within some seconds, and while it runs."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self._process and self._process.poll() is None:
            with suppress(Exception):
                if self.client(5).ping():
                    return True
            time.sleep(0.1)
        return False

    def _number(self) -> int:
        assert self._process
        return self._process.pid

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, number)
        self._process.wait(60)
        self._process = None

    def _clear_traces(self) -> None:
        """What a killed daemon leaves: its number, its containerd, and that one's number."""
        (self.folder / "docker.pid").unlink(missing_ok=True)
        trace = self.folder / "exec" / "containerd" / "containerd.pid"
        if not trace.exists():
            return
        with suppress(OSError, ValueError):
            number = int(trace.read_text())
            if str(self.folder).encode() in Path(f"/proc/{number}/cmdline").read_bytes():
                os.kill(number, signal.SIGKILL)
                time.sleep(0.3)
        trace.unlink(missing_ok=True)


def _state(task: Path) -> str:
    """What a thread does, in a letter; it may have ended meanwhile."""
    with suppress(OSError):
        return (task / "stat").read_text().rpartition(")")[2].split()[0]
    return "X"


def _has(daemon: Daemon, image: str) -> bool:
    with suppress(docker.errors.ImageNotFound):
        own = docker.from_env().images.get(image).id
        return bool(daemon.client().images.get(image).id == own)
    return False


def _mount_disk(file: Path, target: Path, size: int) -> None:
    run("truncate", "-s", size, file)
    run("mkfs.ext4", "-q", file)
    run("mount", "-o", "loop", file, target)
