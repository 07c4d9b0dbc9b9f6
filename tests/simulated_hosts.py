"""Many simulated Docker hosts: minimal daemons on loopback addresses.

Each daemon has its own address and answers as if its probe container ran at once. Dead ones accept
connections and never answer.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from moorage.engines.labels import LABEL_LEDGER, LABEL_MODEL, LABEL_RELEASE
from moorage.engines.workload import Workload
from moorage.inventory.fleet import Fleet

HELPER = "python:3.12-slim"
CONTAINER = "c0ffee"

PROBE = """\
== pci
0x030200 0x10de
== tools
nvidia-smi
== nvidia
{gpus}
== nvidia-runtime
| NVIDIA-SMI 570.86.15   Driver Version: 570.86.15   CUDA Version: 12.8     |
== meminfo
MemTotal:       1056270320 kB
MemAvailable:   1000000000 kB
== cores
128
== image-disk
Filesystem     1024-blocks      Used Available Capacity Mounted on
overlay           98304000  85721088  12582912      88% /
"""
GPU = "{index}, GPU-{host}-{index}, NVIDIA H100 80GB HBM3, 81559, 81000, 79, 570.86.15, Disabled"


class SimulatedHosts:
    """Daemons on the addresses `127.1.X.Y` of this machine, all on the same free port.

    Args:
        alive: How many answer.
        dead: How many do not. They are spread evenly over the addresses, from the first on.

    Attributes:
        workloads: Their workloads, by address; to be set before entering the context.
    """

    def __init__(self, alive: int, dead: int) -> None:
        self.addresses = [f"127.1.{n // 250}.{n % 250 + 1}" for n in range(alive + dead)]
        self.dead = frozenset(
            list(range(0, alive + dead, max(1, (alive + dead) // max(dead, 1))))[:dead]
        )
        with socket.create_server(("127.1.0.0", 0)) as free:
            self.port = free.getsockname()[1]
        self._sockets = [
            socket.create_server((address, self.port), backlog=64) for address in self.addresses
        ]
        self.workloads: dict[str, list[Workload]] = {}
        self._loop, self._end = asyncio.new_event_loop(), asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()
        for listening in self._sockets:
            listening.close()

    @contextmanager
    def in_own_process(self) -> Iterator[None]:
        """Run them in a separate process, so that their processor time is not the caller's."""
        process = multiprocessing.get_context("fork").Process(target=self._run, daemon=True)
        process.start()
        try:
            yield
        finally:
            process.kill()
            process.join()
            for listening in self._sockets:
                listening.close()

    @property
    def fleet(self) -> Fleet:
        """All hosts, as in a user's fleet file."""
        return Fleet.model_validate(
            {
                "hosts": [
                    {"name": f"sim-{at}", "address": self.url(at), "bind": "10.0.0.1"}
                    for at in range(len(self.addresses))
                ],
                "helper_image": HELPER,
            }
        )

    def url(self, at: int) -> str:
        """The address of a host's daemon."""
        return f"tcp://{self.addresses[at]}:{self.port}"

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        """Serve until the end, which cancels open connections."""
        for at, listening in enumerate(self._sockets):
            if at not in self.dead:
                daemon = _Daemon(at, self.workloads.get(self.url(at), ()))
                await asyncio.start_server(daemon.talk, sock=listening)
        await self._end.wait()


class _Daemon:
    """One daemon's answers."""

    def __init__(self, number: int, workloads: Sequence[Workload]) -> None:
        gpus = "\n".join(GPU.format(host=number, index=index) for index in range(8))
        self._said = PROBE.format(gpus=gpus).encode()
        self._workloads = workloads

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection, one after the other."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                verb, path, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
                length = next(
                    (
                        int(line.split(b":")[1])
                        for line in head.lower().split(b"\r\n")
                        if line.startswith(b"content-length:")
                    ),
                    0,
                )
                await reader.readexactly(length)
                status, body = self._answer(verb, path.partition("?")[0])
                head = (
                    f"HTTP/1.1 {status} OK\r\nContent-Type: application/json\r\n"
                    f"Content-Length: {len(body)}\r\n\r\n".encode()
                )
                writer.write(head + body)  # one packet: a second would wait for an ack
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            writer.close()

    def _answer(self, verb: str, path: str) -> tuple[int, bytes]:
        if path.endswith(f"/containers/{CONTAINER}/logs"):
            return 200, b"\x01\0\0\0" + len(self._said).to_bytes(4) + self._said  # stdout
        answers: dict[str, object] = {
            f"images/{HELPER}/json": {"Id": "sha256:1", "RepoDigests": []},
            "version": {"ApiVersion": "1.41", "MinAPIVersion": "1.12", "Version": "20.10.24"},
            "info": {
                "Name": "simulated",
                "NCPU": 128,
                "MemTotal": 1 << 40,
                "Architecture": "x86_64",
                "ServerVersion": "20.10.24",
                "Runtimes": {"nvidia": {}, "runc": {}},
            },
            "images/json": [{"RepoTags": [HELPER], "RepoDigests": None}],
            "containers/create": {"Id": CONTAINER, "Warnings": []},
            f"containers/{CONTAINER}/json": {"Id": CONTAINER, "Config": {"Tty": False}},
            f"containers/{CONTAINER}/wait": {"StatusCode": 0},
            "containers/json": list(map(_listed, self._workloads)),
            **{f"containers/{one.name}/json": _inspected(one) for one in self._workloads},
        }
        for end, answer in answers.items():
            if path.endswith(f"/{end}"):
                return 200, json.dumps(answer).encode()
        return (204, b"") if verb in ("POST", "DELETE") else (404, b"{}")


def _listed(workload: Workload) -> dict[str, Any]:
    return {
        "Id": workload.identity,
        "Names": [f"/{workload.name}"],
        "State": "running",
        "Status": "Up 2 hours",
        "Created": 1_772_000_000,
        "Labels": _labels(workload),
    }


def _inspected(workload: Workload) -> dict[str, Any]:
    return {
        "Id": workload.identity,
        "Name": f"/{workload.name}",
        "RestartCount": 0,
        "State": {"Status": "running", "ExitCode": 0},
        "Config": {"Labels": _labels(workload)},
    }


def _labels(workload: Workload) -> dict[str, str]:
    model, _, _ = workload.release.rpartition(".")
    return {
        LABEL_LEDGER: workload.ledger,
        LABEL_MODEL: model,
        LABEL_RELEASE: workload.release,
    }
