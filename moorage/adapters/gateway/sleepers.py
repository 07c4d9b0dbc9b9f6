"""Wakes models and puts them to sleep, with the same commands that people use."""

import asyncio
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from moorage.adapters.gateway.doorman import Endpoint
from moorage.adapters.gateway.table_reader import release_secret
from moorage.adapters.ledger import Ledger
from moorage.adapters.secrets import read_secrets
from moorage.adapters.system.process import INTERPRETER
from moorage.common.failures import Cause, Failure
from moorage.gateway.idleness import Idle, room_makers
from moorage.inventory.claims import Resource

NO_ROOM = {Cause.NO_FIT, Cause.CLAIM_CONFLICT}
ROOM_SECONDS = 60.0
"""How long a model without room waits for other models to become idle."""

LEAST_IDLE_SECONDS = 10.0
"""How long a model must be idle before it makes room, so that models do not swap constantly."""

POLL_SECONDS = 0.5
SWITCH_SECONDS = 0.1
"""How often to check whether a successor has taken over, or the predecessor serves again."""
LONGEST_LINE = 300

NO_WAIT = {"MOORAGE_LOCK_WAIT_SECONDS": "0"}
"""After a wait another release may serve, or somebody may have asked, so the decision is stale."""

COMMAND = (*INTERPRETER, "-m", "moorage.cli")


class Sleepers:
    """Wakes models of a ledger and puts them to sleep.

    Args:
        folder: Working directory of the commands.
        idle: Returns the models with a `keep_alive` that have no requests, longest idle first.
        fleet: Returns the fleet file to use; empty = no `--fleet` option.
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
        """Start a model, and return its endpoint once it has answered with a token.

        If a successor starts in the place of the model's release, wait for that. If the model has
        no room, the longest idle models with a `keep_alive` are put to sleep.

        Raises:
            Failure: The model does not start, or was retired meanwhile.
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
            Failure: The model could not be stopped, and still serves; `DEPLOY_IN_PROGRESS` at once
                when a flow works on it.
        """
        await self._run("unload", model, "--reason", reason, **NO_WAIT)

    async def _make_room(self, model: str, give_up: float) -> bool:
        """Put an idle model to sleep on a host that `model` needs; False = none idle in time."""
        async with self._making_room:
            while not await self._free_neighbour(model):
                if time.monotonic() > give_up:
                    return False
                await asyncio.sleep(POLL_SECONDS)
            return True

    async def _free_neighbour(self, model: str) -> bool:
        """Put the longest idle model near to sleep on which no flow works; False = none is left."""
        for other in await asyncio.to_thread(self._idle_neighbours, model):
            try:
                await self.put_to_sleep(other, f"to make room for {model}")
            except Failure as failure:
                if failure.cause != Cause.DEPLOY_IN_PROGRESS:
                    raise
            else:
                return True
        return False

    def _idle_neighbours(self, model: str) -> list[str]:
        """The idle models that make room for a sleeping model, longest idle first."""
        row = self._ledger.releases.asleep(model)
        if not row or not row.release or not row.placement:
            return []
        ignored = Resource.ACCELERATOR if row.release.spec.placement.overcommit else None
        idle = [one for one in self._idle() if one.seconds >= LEAST_IDLE_SECONDS]
        near = room_makers(
            [claim for claim in row.placement.claims if claim.resource != ignored],
            [claim for claim in self._ledger.claims.all() if claim.release != row.id],
            {one.release for one in idle},
            self._ledger.unseen_hosts.capacities(),
        )
        return [one.model for one in idle if one.release in near]

    def _endpoint(self, model: str) -> Endpoint | None:
        """Endpoint of a model; None = it does not serve.

        Raises:
            Failure: It serves another protocol than OpenAI's, as a successor may.
        """
        routes = self._ledger.routes.routes(model)
        if not routes or not routes[0].endpoints:
            return None
        if routes[0].other_protocol:
            raise Failure(Cause.ENGINE_UNREACHABLE, f"{model}: {routes[0].other_protocol}")
        secret = release_secret(self._ledger, routes[0].release)
        key = read_secrets([secret])[secret] if secret else ""
        return Endpoint(routes[0].endpoints, key, routes[0].release)

    async def _run(self, *arguments: str, **variables: str) -> None:
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            *arguments,
            "--json",
            cwd=self._folder,
            env={**os.environ, **variables},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        answer, errors = await process.communicate()
        if process.returncode:
            raise _failure(arguments[0], answer, errors)


def _failure(command: str, answer: bytes, errors: bytes) -> Failure:
    """The failure that a command printed; for a crashed command, its last line."""
    try:
        error = json.loads(answer)["error"]
        return Failure(Cause(error["cause"]), error["detail"])
    except (ValueError, LookupError, TypeError):
        last = errors.decode(errors="replace").strip().rpartition("\n")[2][:LONGEST_LINE]
        return Failure(Cause.INTERRUPTED, f"`moorage {command}` has ended: {last}")
