"""Serves the doorman on a socket, in a thread of its own."""

import asyncio
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import uvicorn

from moorage.adapters.gateway.doorman import Doorman


class DoormanServer:
    """The doorman on a Unix socket, which only the user of its folder reaches.

    Args:
        doorman: What it serves.
        socket: Path of the socket.
    """

    def __init__(self, doorman: Doorman, socket: Path) -> None:
        self._loop = asyncio.new_event_loop()
        config = uvicorn.Config(
            doorman, uds=str(socket), lifespan="off", log_level="warning", access_log=False
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="doorman", daemon=True)

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do something in its event loop."""
        asyncio.run_coroutine_threadsafe(work, self._loop)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._server.serve())
