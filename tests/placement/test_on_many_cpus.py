"""One replica on the processors of several hosts: every host is a rank."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.common.refusal import Reason
from moorage.common.units import GIB
from moorage.engines.registry import ENGINES
from moorage.inventory.claims import Resource
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.placement import Placement
from moorage.placement.role import Role
from moorage.spec import EngineName
from tests.builders import a_claim, a_host, a_profile, a_spec
from tests.placement.requests import a_request, on_hosts


def cpu(number: int, gib: int = 128, **changes: Any) -> HostSnapshot:
    """A host without accelerators, with an address that others reach."""
    values = {"bind": f"10.0.0.{number}", "ram_total": gib * GIB, "ram_free": gib * GIB}
    return a_host(f"h{number}", 0, **{**values, **changes})


def over(*hosts: HostSnapshot, heads: int = 32, **wish: Any) -> Placement:
    """Where a model goes that wants no accelerators and 24 GiB on each of two hosts."""
    engine = {"name": "vllm", "distributed": wish.pop("distributed", "auto")}
    args = wish.pop("args", ())
    placement = {"accelerators": 0, "hosts": 2, "ram": "24GiB", **wish}
    spec = a_spec(engine={**engine, "args": list(args)}, placement=placement)
    return on_hosts(a_request(spec, a_profile(attention_heads=heads)), *hosts)


def test_every_host_is_a_rank_with_ram_cores_and_ports_of_its_own() -> None:
    placement = over(cpu(1, cpus=8), cpu(2, cpus=8), cores=4)
    leader, follower = placement.seats
    assert (leader.role, follower.role) == (Role.LEADER, Role.FOLLOWER)
    assert {(seat.tensor, seat.pipeline) for seat in placement.seats} == {(2, 1)}
    held = {(claim.host, claim.resource, claim.index): claim.amount for claim in placement.claims}
    assert held == {
        ("h1", Resource.RAM, 0): 24 * GIB,
        ("h1", Resource.CORES, 0): 4,
        ("h1", Resource.PORT, 40000): 1,
        ("h1", Resource.PORT, 40001): 1,
        ("h2", Resource.RAM, 0): 24 * GIB,
        ("h2", Resource.CORES, 0): 4,
        ("h2", Resource.PORT, 40000): 1,
    }


def test_one_replica_stays_at_one_site() -> None:
    a, b = {"site": "a"}, {"site": "b"}
    seats = over(cpu(1, labels=a), cpu(2, labels=b), cpu(3, labels=a)).seats
    assert [seat.host for seat in seats] == ["h1", "h3"]
    assert not over(cpu(1, labels=a), cpu(2, labels=b)).fits


def test_ray_holds_the_ports_of_its_services_on_every_host() -> None:
    second = cpu(2, ray_range=(42000, 42099))
    leader, follower = over(cpu(1), second, distributed="ray").seats
    ports = [claim.index for claim in leader.claims if claim.resource == Resource.PORT]
    assert ports == [40000, 40001, 40002, *range(41000, 41010)]
    ports = [claim.index for claim in follower.claims if claim.resource == Resource.PORT]
    assert ports == [40000, *range(42000, 42010)]


@pytest.mark.parametrize(
    ("hosts", "wish", "refusals"),
    [
        ((cpu(1),), {}, [Reason.TOO_FEW_HOSTS]),
        ((cpu(1), cpu(2, bind="127.0.0.1")), {}, [Reason.TOO_FEW_HOSTS, Reason.NOT_JOINABLE]),
        ((cpu(1), cpu(2, bind="0.0.0.0")), {}, [Reason.TOO_FEW_HOSTS, Reason.NOT_JOINABLE]),
        ((cpu(1), cpu(2, 16)), {}, [Reason.TOO_FEW_HOSTS, Reason.RAM]),
        ((cpu(1), cpu(2)), {"heads": 25}, [Reason.PARALLELISM] * 2),
        ((cpu(1), cpu(2)), {"args": ["-tp 4"], "heads": 32}, [Reason.TOO_FEW_HOSTS] * 2),
        (
            (cpu(1), cpu(2, port_range=(9000, 9000))),
            {},
            [Reason.TOO_FEW_HOSTS, Reason.PORT],
        ),
        (
            (cpu(1), cpu(2, ports_in_use=(41003,))),
            {"distributed": "ray"},
            [Reason.TOO_FEW_HOSTS, Reason.PORT],
        ),
        (
            (cpu(1), cpu(2, claims=(a_claim(Resource.PORT, 1, 41000, host="h2"),))),
            {"distributed": "ray"},
            [Reason.TOO_FEW_HOSTS, Reason.PORT],
        ),
        (
            (cpu(1), cpu(2, port_range=(41900, 42100))),
            {"distributed": "ray"},
            [Reason.TOO_FEW_HOSTS, Reason.PORT],
        ),
    ],
)
def test_a_host_that_cannot_take_part_says_why(
    hosts: tuple[HostSnapshot, ...], wish: dict[str, Any], refusals: list[Reason]
) -> None:
    placement = over(*hosts, **wish)
    assert [verdict.refusal for verdict in placement.verdicts] == refusals
    assert not placement.fits


def test_a_host_that_is_not_needed_says_that_it_could_take_part() -> None:
    placement = over(cpu(1), cpu(2), cpu(3, 64))
    assert [seat.host for seat in placement.seats] == ["h1", "h2"]
    assert placement.verdicts[2].refusal is None
    assert "could take part" in placement.verdicts[2].detail


def test_where_one_host_is_enough_only_a_number_takes_several() -> None:
    assert len(over(cpu(1), cpu(2), hosts="auto", across_hosts=True).seats) == 1
    small = (cpu(1, 16), cpu(2, 16))
    assert not over(*small, hosts="auto", across_hosts=True).fits  # 24 GiB are stated for each


def test_replicas_over_the_same_hosts_get_ports_of_their_own() -> None:
    spec = a_spec(
        replicas=2,
        engine={"name": "vllm"},
        placement={"accelerators": 0, "hosts": 2, "ram": "24GiB"},
    )
    claims = on_hosts(a_request(spec), cpu(1), cpu(2)).claims
    ports = [(claim.host, claim.index) for claim in claims if claim.resource == Resource.PORT]
    assert len(ports) == len(set(ports)) == 6


def test_ports_that_only_join_hosts_are_no_replicas() -> None:
    spec = a_spec(
        replicas=4,
        engine={"name": "vllm"},
        placement={"accelerators": 0, "hosts": 2, "ram": "40GiB"},
    )
    refused = on_hosts(a_request(spec), cpu(1), cpu(2))
    assert not refused.fits
    assert "3 of the replicas placed here already" in refused.verdicts[0].detail


def test_an_engine_that_cannot_span_hosts_is_refused() -> None:
    spec = a_spec(engine={"name": "transformers"}, placement={"accelerators": 0, "hosts": 2})
    with pytest.raises(Failure, match="transformers cannot run one replica on 2 hosts") as caught:
        a_request(spec, engine=ENGINES[EngineName.TRANSFORMERS])
    assert caught.value.cause is Cause.BAD_SPEC
