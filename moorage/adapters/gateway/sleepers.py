"""Wakes models and puts them to sleep: each by the command that people use."""

import asyncio
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from moorage.adapters.gateway.doorman import Endpoint
from moorage.adapters.gateway.table_reader import engine_secret
from moorage.adapters.ledger import Ledger
from moorage.adapters.secrets import read_secrets
from moorage.common.failures import Cause, Failure
from moorage.gateway.idleness import Idle

NO_ROOM = {Cause.NO_FIT, Cause.CLAIM_CONFLICT}
ROOM_SECONDS = 60.0
"""How long a model that has no room waits for others to become idle."""

LEAST_IDLE_SECONDS = 10.0
"""How long a model must be idle before it makes room, so that models do not change all the time."""

POLL_SECONDS = 0.5
SWITCH_SECONDS = 0.1
"""How soon it is noticed that a release has taken over, or serves again."""
LONGEST_LINE = 300

COMMAND = (sys.executable, "-m", "moorage.cli")


class Sleepers:
    """Wakes models of a ledger and puts them to sleep.

    Args:
        folder: Where the commands are run.
        idle: The models with a `keep_alive` that have no requests, the longest idle first.
        fleet: Says which fleet file is used; empty = the hosts of this machine.
    """

    def __init__(
        self,
        ledger: Ledger,
        folder: Path,
        idle: Callable[[], Sequence[Idle]],
        fleet: Callable[[], str] = str,
    ) -> None:
        self._ledger, self._folder, self._idle = ledger, folder, idle
        self._making_room = asyncio.Lock()
        self._fleet = fleet

    async def wake(self, model: str) -> Endpoint:
        """Start a model, and return where it answers, once it has answered with a token.

        While its next release starts in the place of the one before, that is awaited. Where it has
        no room, models that are idle for longest make room, if their specs let them sleep at all.

        Raises:
            Failure: It does not start; also when it was retired meanwhile.
        """
        while await asyncio.to_thread(self._ledger.routes.awaits_successor, model):
            await asyncio.sleep(SWITCH_SECONDS)
        if found := await asyncio.to_thread(self._endpoint, model):
            return found
        give_up = time.monotonic() + ROOM_SECONDS
        while True:
            try:
                fleet = await asyncio.to_thread(self._fleet)
                await self._run("load", model, *(("--fleet", fleet) if fleet else ()))
                if found := await asyncio.to_thread(self._endpoint, model):
                    return found
                raise Failure(Cause.UNKNOWN_RELEASE, f"{model} is not running")
            except Failure as failure:
                if failure.cause not in NO_ROOM or not await self._make_room(model, give_up):
                    raise

    async def put_to_sleep(self, model: str, reason: str) -> None:
        """Stop a model, and keep its release.

        Raises:
            Failure: It serves on.
        """
        await self._run("unload", model, "--reason", reason)

    async def _make_room(self, model: str, give_up: float) -> bool:
        """Put one model to sleep on a host of another; False = none became idle in time."""
        async with self._making_room:
            while not (other := await asyncio.to_thread(self._idle_neighbour, model)):
                if time.monotonic() > give_up:
                    return False
                await asyncio.sleep(POLL_SECONDS)
            await self.put_to_sleep(other, f"to make room for {model}")
            return True

    def _idle_neighbour(self, model: str) -> str:
        """The model that is idle for longest on the hosts of a sleeper; empty = none is."""
        row = self._ledger.releases.asleep(model)
        hosts = {claim.host for claim in row.placement.claims} if row and row.placement else set()
        near = {claim.release for claim in self._ledger.claims.all() if claim.host in hosts}
        found = (one for one in self._idle() if one.release in near)
        return next((one.model for one in found if one.seconds >= LEAST_IDLE_SECONDS), "")

    def _endpoint(self, model: str) -> Endpoint | None:
        """Where a model answers; None = nowhere."""
        routes = self._ledger.routes.routes(model)
        if not routes or not routes[0].endpoints:
            return None
        secret = engine_secret(self._ledger, routes[0].release)
        key = read_secrets([secret])[secret] if secret else ""
        return Endpoint(routes[0].endpoints[0], key, routes[0].release)

    async def _run(self, *arguments: str) -> None:
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            *arguments,
            "--json",
            cwd=self._folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        answer, errors = await process.communicate()
        if process.returncode:
            raise _failure(arguments[0], answer, errors)


def _failure(command: str, answer: bytes, errors: bytes) -> Failure:
    """What a command says went wrong; one that crashed says it in its last line."""
    try:
        error = json.loads(answer)["error"]
        return Failure(Cause(error["cause"]), error["detail"])
    except (ValueError, LookupError, TypeError):
        last = errors.decode(errors="replace").strip().rpartition("\n")[2][:LONGEST_LINE]
        return Failure(Cause.INTERRUPTED, f"`moorage {command}` has ended: {last}")
