"""A slow connection to a server: a proxy that limits the rate of its answers."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress

PIECE = 64 * 2**10


class NarrowWay:
    """Forwards connections, and limits the rate of each connection's answers.

    Args:
        behind: Host and port of the server.
        address: Address on which it listens, on a free port.
        rate: Bytes per second of each connection; 0 = no limit.

    Attributes:
        host: Host and port of the proxy.
        passed: Bytes of answers so far.
    """

    def __init__(self, behind: str, address: str, rate: int = 0) -> None:
        self._behind, self._rate = behind, rate
        self._open: list[socket.socket] = []
        self._listening = socket.create_server((address, 0))
        self.host = f"{address}:{self._listening.getsockname()[1]}"
        self.passed = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def set_rate(self, rate: int) -> None:
        """Set the rate from now on; 0 = no limit."""
        self._rate = rate

    def close(self) -> None:
        """Stop listening, and break all connections."""
        # Shut down before the close: a thread in `accept` would keep the socket open.
        for one in (self._listening, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                host, _, port = self._behind.rpartition(":")
                far = socket.create_connection((host, int(port)))
                self._open += [near, far]
                for way in ((near, far, False), (far, near, True)):
                    threading.Thread(target=self._pass_on, args=way, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        with suppress(OSError):
            while piece := source.recv(PIECE):
                target.sendall(piece)
                if answers:
                    self.passed += len(piece)
                    time.sleep(len(piece) / self._rate if self._rate else 0)
            target.shutdown(socket.SHUT_WR)
