from __future__ import annotations

import pytest

from moorage.common.units import GIB
from moorage.inventory.claims import Claim, Resource, remainder
from moorage.placement.placement import Seat
from moorage.spec import RuntimeName


def held(**changes: object) -> list[tuple[Resource, int, int]]:
    values = {"replica": 0, "host": "gpu-1", "runtime": RuntimeName.DOCKER, "port": 40000}
    seat = Seat.model_validate({**values, "reason": "", **changes})
    assert {claim.host for claim in seat.claims} == {"gpu-1"}
    return [(claim.resource, claim.index, claim.amount) for claim in seat.claims]


def test_a_seat_claims_each_accelerator_its_ram_and_its_port() -> None:
    claims = held(accelerators=(1, 3), accelerator_bytes=(72 * GIB, 36 * GIB), ram_bytes=GIB)
    assert claims == [
        (Resource.ACCELERATOR, 1, 72 * GIB),
        (Resource.ACCELERATOR, 3, 36 * GIB),
        (Resource.RAM, 0, GIB),
        (Resource.PORT, 40000, 1),
    ]


def test_a_seat_always_claims_its_port_and_never_nothing_of_ram() -> None:
    assert held() == [(Resource.PORT, 40000, 1)]


def ram(amount: int, host: str = "gpu-1") -> Claim:
    return Claim(host=host, resource=Resource.RAM, amount=amount)


@pytest.mark.parametrize(
    ("held", "used", "left"),
    [
        ([ram(14)], [], [14]),
        ([ram(14)], [ram(5)], [9]),
        ([ram(14)], [ram(14)], []),
        ([ram(14)], [ram(20)], []),
        ([ram(14)], [ram(5, "gpu-2")], [14]),
        ([ram(8), ram(8)], [ram(10)], [6]),
    ],
)
def test_what_others_do_not_take_of_a_claim_is_left(
    held: list[Claim], used: list[Claim], left: list[int]
) -> None:
    assert [claim.amount for claim in remainder(held, used)] == left
