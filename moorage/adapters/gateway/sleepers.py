"""Wakes models and puts them to sleep: each by the command that people use."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from moorage.adapters.gateway.doorman import Endpoint
from moorage.adapters.gateway.table_reader import engine_secret
from moorage.adapters.ledger import Ledger
from moorage.adapters.secrets import read_secrets
from moorage.common.failures import Cause, Failure

COMMAND = (sys.executable, "-m", "moorage.cli")


class Sleepers:
    """Wakes models of a ledger and puts them to sleep.

    Args:
        folder: Where the commands are run.
        fleet: Fleet file; empty = the hosts of this machine.
    """

    def __init__(self, ledger: Ledger, folder: Path, fleet: str = "") -> None:
        self._ledger, self._folder = ledger, folder
        self._fleet = ("--fleet", fleet) if fleet else ()

    async def wake(self, model: str) -> Endpoint:
        """Start a model, and return where it answers, once it has answered with a token.

        Raises:
            Failure: It does not start; also when it was retired meanwhile.
        """
        await self._run("load", model, *self._fleet)
        return await asyncio.to_thread(self._endpoint, model)

    async def put_to_sleep(self, model: str, reason: str) -> None:
        """Stop a model, and keep its release.

        Raises:
            Failure: It serves on.
        """
        await self._run("unload", model, "--reason", reason)

    def _endpoint(self, model: str) -> Endpoint:
        routes = self._ledger.routes.routes(model)
        if not routes or not routes[0].endpoints:
            raise Failure(Cause.UNKNOWN_RELEASE, f"{model} is not running")
        secret = engine_secret(self._ledger, routes[0].release)
        return Endpoint(routes[0].endpoints[0], read_secrets([secret])[secret] if secret else "")

    async def _run(self, *arguments: str) -> None:
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            *arguments,
            "--json",
            cwd=self._folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        answer, _ = await process.communicate()
        if process.returncode:
            raise _failure(answer)


def _failure(answer: bytes) -> Failure:
    """What a command says went wrong."""
    try:
        error = json.loads(answer)["error"]
        return Failure(Cause(error["cause"]), error["detail"])
    except (ValueError, LookupError, TypeError):
        return Failure(Cause.RUNTIME_UNAVAILABLE, "the command that starts it has ended")
