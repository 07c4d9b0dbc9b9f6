"""Serves the doorman on a Unix socket, in its own thread."""

import asyncio
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import uvicorn

from moorage.adapters.gateway.doorman import Doorman


class DoormanServer:
    """The doorman on a Unix socket, which only the owner of the socket's folder can reach."""

    def __init__(self, doorman: Doorman, socket: Path) -> None:
        self._loop = asyncio.new_event_loop()
        config = uvicorn.Config(
            doorman, uds=str(socket), lifespan="off", log_level="warning", access_log=False
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="doorman", daemon=True)

    def start(self) -> None:
        """Start to serve."""
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run a coroutine in the doorman's event loop."""
        asyncio.run_coroutine_threadsafe(work, self._loop)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._server.serve())
