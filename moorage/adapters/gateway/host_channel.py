"""Requests to the program that handles a gateway's files on Envoy's host, through Docker."""

import json
import time
from contextlib import suppress
from threading import Lock
from typing import Any
from uuid import uuid4

from moorage.adapters.docker import sdk
from moorage.adapters.docker.client import daemon
from moorage.adapters.docker.containers import remove_container
from moorage.adapters.docker.helper_job import MEMORY, PYTHON
from moorage.adapters.gateway import folder_program
from moorage.adapters.transfer import bundle
from moorage.common.failures import Cause, Failure
from moorage.common.strict_json import JsonError, decode
from moorage.common.units import MIB
from moorage.engines.launch import ContainerSpec
from moorage.gateway.gateway import GatewayHost
from moorage.gateway.programs import HOST_USER

PROGRAM = bundle(folder_program)
LABEL = "moorage.gateway"
"""Label of the program's containers; its value is the name of Envoy's container."""

ASK_SECONDS = 10
ANSWER_SECONDS = 30.0
"""Limit for a whole answer: a compromised host must not block the service."""

MOST_BYTES = 64 * MIB
LONGEST_HEADER = 65_536
FRAME_HEADER = 8
"""Bytes before each piece of a container's output; they give its stream and its length."""

OUTPUT = 1
RIGHTS = ("CHOWN", "SETGID", "SETUID")
"""Capabilities with which the program gives the folders to Envoy's user and becomes that user."""

Answer = tuple[dict[str, Any], bytes]


class HostChannel:
    """Access to the files of one gateway on its host.

    The program runs in a container without a network, and exits when it gets no more requests.
    Requests go through its input, so no secret is in an argument, a label or a log.

    Args:
        envoy: Envoy's container; the program mounts the same volumes.
    """

    def __init__(self, host: GatewayHost, envoy: ContainerSpec) -> None:
        self._host, self._envoy = host, envoy
        self._link: Link | None = None
        self._lock = Lock()

    @property
    def is_open(self) -> bool:
        """Whether a connection to the program is open."""
        return self._link is not None

    def ask(self, do: str, body: bytes = b"", **fields: Any) -> Answer:
        """Send a request and return the answer; start the program again if it has exited.

        Raises:
            Failure: When the host or the program does not answer.
        """
        with self._lock:
            header = json.dumps({"do": do, "size": len(body), **fields}).encode()
            if self._link:
                with suppress(OSError, JsonError, *sdk.DAEMON_ERRORS):
                    return self._link.ask(header + b"\n" + body)
                self._close()
            try:
                self._link = self._open()
                return self._link.ask(header + b"\n" + body)
            except (OSError, JsonError) as error:
                self._close()
                detail = f"{self._host.name} does not answer: {error}"
                raise Failure(Cause.RUNTIME_UNAVAILABLE, detail) from error

    def remove(self) -> None:
        """Remove all containers of the program, including those of a killed service."""
        self._close()
        with daemon(self._host.address, ASK_SECONDS) as client:
            own: dict[str, str | list[str] | bool] = {"label": f"{LABEL}={self._envoy.name}"}
            for container in client.containers.list(all=True, filters=own, ignore_removed=True):
                with suppress(sdk.NotFound):
                    remove_container(container)

    def _close(self) -> None:
        if self._link:
            self._link.close()
            self._link = None

    def _open(self) -> "Link":
        with daemon(self._host.address, ASK_SECONDS) as client:
            container = client.containers.create(**self._arguments())
            try:
                link = Link(
                    container.attach_socket(
                        params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
                    )
                )
                container.start()
            except sdk.APIError:
                remove_container(container)
                raise
            return link

    def _arguments(self) -> dict[str, Any]:
        """Container options like those of `helper_config`, plus the volumes, minus the network."""
        return {
            "image": self._host.helper_image,
            "entrypoint": list(PYTHON[:1]),
            "command": [*PYTHON[1:], PROGRAM, str(HOST_USER)],
            "name": f"moorage-gateway-files-{uuid4().hex[:12]}",
            "labels": {LABEL: self._envoy.name},
            "network_mode": "none",
            "read_only": True,
            "user": "0:0",
            "cap_drop": ["ALL"],
            "cap_add": list(RIGHTS),
            "security_opt": ["no-new-privileges"],
            "mem_limit": MEMORY,
            "stdin_open": True,
            "auto_remove": True,
            "use_config_proxy": False,
            "mounts": [
                sdk.Mount(one.target, one.source, type="volume", labels=self._envoy.labels)
                for one in self._envoy.mounts
            ],
        }


class Link:
    """Input and output of one container.

    Args:
        stream: Attached socket, as Docker's library returns it.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._raw: Any = getattr(stream, "_sock", stream)
        self._output, self._errors = bytearray(), b""

    def ask(self, question: bytes) -> Answer:
        """Send a request and return the answer.

        Raises:
            OSError: When no answer comes in time, or it is too large.
            JsonError: When the answer is not valid JSON.
        """
        give_up = time.monotonic() + ANSWER_SECONDS
        self._raw.settimeout(ANSWER_SECONDS)
        self._raw.sendall(question)
        while b"\n" not in self._output:
            if len(self._output) > LONGEST_HEADER:
                raise OSError("its answer is not one of the program's")
            self._receive(give_up)
        line, _, rest = bytes(self._output).partition(b"\n")
        header = decode(line)
        size = header.get("size") if isinstance(header, dict) else None
        if not isinstance(size, int) or not 0 <= size <= MOST_BYTES:
            raise OSError("its answer is not one of the program's")
        self._output = bytearray(rest)
        while len(self._output) < size:
            self._receive(give_up)
        body = bytes(self._output[:size])
        del self._output[:size]
        return header, body

    def close(self) -> None:
        """Close the program's input, which makes the program exit."""
        with suppress(OSError):
            self._raw.close()
        with suppress(OSError):
            self._stream.close()

    def _receive(self, give_up: float) -> None:
        """Read the next piece of the output."""
        frame = self._exactly(FRAME_HEADER, give_up)
        length = int.from_bytes(frame[4:], "big")
        if length > MOST_BYTES:
            raise OSError("its answer is too large")
        piece = self._exactly(length, give_up)
        if frame[0] == OUTPUT:
            self._output += piece
        else:
            self._errors = (self._errors + piece)[-500:]

    def _exactly(self, count: int, give_up: float) -> bytes:
        found = bytearray()
        while len(found) < count:
            left = give_up - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"no whole answer within {ANSWER_SECONDS:g} s")
            self._raw.settimeout(left)
            piece = self._raw.recv(count - len(found))
            if not piece:
                last = self._errors.decode(errors="replace").strip().rpartition("\n")[2]
                raise OSError(f"the program has ended: {last}")
            found += piece
        return bytes(found)
