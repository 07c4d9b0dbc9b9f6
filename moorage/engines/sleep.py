"""How an engine sleeps without exiting, and the claims that it keeps meanwhile."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from moorage.common.values import Value
from moorage.inventory.claims import Claim, Resource
from moorage.memory.need import Need
from moorage.placement.placement import Placement


class SleepStep(Value):
    """A POST request that puts an engine to sleep or wakes it."""

    path: str
    parameters: dict[str, str] = {}
    body: dict[str, Any] | None = None


class EngineSleep(Value):
    """The requests that put an engine to sleep and wake it, in order.

    Attributes:
        state: Path whose answer says in `is_sleeping` whether the engine sleeps.
        reads_files: Whether waking reads the weights again.
    """

    sleep: tuple[SleepStep, ...]
    wake: tuple[SleepStep, ...]
    state: str
    reads_files: bool = False


def claims_asleep(
    placement: Placement, bytes_asleep: Callable[[Need | None, int], int]
) -> tuple[Claim, ...]:
    """The claims of a release while its engines sleep; ports and cores are left out.

    `bytes_asleep` says what an engine keeps of an accelerator, by its need and its claim.
    """
    needs = {
        (seat.host, index): seat.need for seat in placement.seats for index in seat.accelerators
    }
    found = []
    for claim in placement.claims:
        amount = claim.amount
        if claim.resource == Resource.ACCELERATOR:
            amount = bytes_asleep(needs.get((claim.host, claim.index)), amount)
        if claim.resource not in (Resource.PORT, Resource.CORES) and amount:
            found.append(replace(claim, amount=amount))
    return tuple(found)
