from __future__ import annotations

from dataclasses import replace

import pytest

from moorage.adapters.ledger import Ledger
from moorage.common.failures import Cause, Failure
from moorage.common.units import GIB
from moorage.inventory.claims import Claim, Resource
from moorage.inventory.snapshot import FleetSnapshot
from moorage.releases.states import ReleaseState
from tests.builders import REVISION, a_claim, a_fleet, a_host, a_spec, an_accelerator

FLEET = a_fleet(a_host("gpu-1"), a_host("gpu-2"))


def begin(ledger: Ledger, name: str = "tiny") -> str:
    return ledger.releases.begin(a_spec(name=name), REVISION, "")


def gpu(gib: int = 72, index: int = 0, host: str = "gpu-1") -> Claim:
    return a_claim(Resource.ACCELERATOR, gib * GIB, index, host=host, release="")


def port(number: int) -> Claim:
    return a_claim(Resource.PORT, 1, number, release="")


def held(ledger: Ledger) -> list[tuple[str, str, int]]:
    return [(claim.release, claim.resource, claim.index) for claim in ledger.claims.all()]


def test_what_is_committed_is_held_and_the_release_is_scheduled(ledger: Ledger) -> None:
    release = begin(ledger)
    wanted = (gpu(), gpu(index=1, host="gpu-2"), a_claim(amount=200 * GIB // 2), port(40000))
    ledger.claims.commit(release, wanted, FLEET)
    assert ledger.claims.all() == tuple(
        replace(claim, release=release, pending=True) for claim in wanted
    )
    assert ledger.releases.get(release).state == ReleaseState.SCHEDULED


@pytest.mark.parametrize("wanted", [(gpu(9),), (port(40000),), (port(40001), gpu(9))])
def test_what_somebody_else_holds_by_now_is_a_conflict_and_changes_nothing(
    ledger: Ledger, wanted: tuple[Claim, ...]
) -> None:
    ledger.claims.commit(begin(ledger, "other"), (gpu(), port(40000)), FLEET)
    release, before = begin(ledger), held(ledger)
    with pytest.raises(Failure, match=r"gpu-1: .*held by other\.v1") as caught:
        ledger.claims.commit(release, wanted, FLEET)
    assert caught.value.cause is Cause.CLAIM_CONFLICT
    assert held(ledger) == before
    assert ledger.releases.get(release).state == ReleaseState.PENDING


def renumbered(*uuids: str) -> FleetSnapshot:
    devices = [an_accelerator(index, uuid=uuid) for index, uuid in enumerate(uuids)]
    return a_fleet(a_host("gpu-1", accelerators=devices))


def test_a_claim_holds_its_device_whatever_the_driver_numbers_it(ledger: Ledger) -> None:
    before, after = renumbered("A", "B", "C"), renumbered("B", "C")
    ledger.claims.commit(begin(ledger, "other"), (replace(gpu(index=1), device="B"),), before)
    release = begin(ledger)
    with pytest.raises(Failure, match=r"accelerator 0: .*other\.v1"):
        ledger.claims.commit(release, (replace(gpu(), device="B"),), after)
    ledger.claims.commit(release, (replace(gpu(index=1), device="C"),), after)
    found = {one.device: (one.release, one.index) for one in ledger.claims.all()}
    assert found == {"B": ("other.v1", 1), "C": (release, 1)}


def test_what_makes_room_gives_up_the_device_that_is_wanted(ledger: Ledger) -> None:
    before, after = renumbered("A", "B", "C"), renumbered("B", "C")
    old, new = begin(ledger), begin(ledger, "new")
    held_before = [replace(gpu(index=index), device="ABC"[index]) for index in range(3)]
    ledger.claims.commit(old, held_before, before)
    wanted = replace(gpu(index=1), device="C")
    ledger.claims.commit(new, (wanted,), after, instead_of=old)
    found = [(one.release, one.device, one.index) for one in ledger.claims.all()]
    assert found == [(new, "C", 1), (old, "B", 0)]


def test_old_claims_of_the_snapshot_do_not_count_any_more(ledger: Ledger) -> None:
    stale = a_fleet(a_host("gpu-1", claims=(gpu(80),)))
    ledger.claims.commit(begin(ledger), (gpu(),), stale)
    assert len(held(ledger)) == 1


def test_a_release_that_must_go_first_frees_its_claims_in_the_same_step(ledger: Ledger) -> None:
    old, new = begin(ledger), begin(ledger)
    ledger.claims.commit(old, (gpu(),), FLEET)
    ledger.claims.commit(new, (gpu(), port(40000)), FLEET, instead_of=old)
    assert {release for release, _, _ in held(ledger)} == {new}


def test_a_conflict_leaves_the_release_that_should_have_gone_its_claims(ledger: Ledger) -> None:
    old, new, other = begin(ledger), begin(ledger), begin(ledger, "other")
    ledger.claims.commit(old, (gpu(),), FLEET)
    ledger.claims.commit(other, (gpu(index=1),), FLEET)
    with pytest.raises(Failure):
        ledger.claims.commit(new, (gpu(), gpu(index=1)), FLEET, instead_of=old)
    assert {release for release, _, _ in held(ledger)} == {old, other}


def test_leader_and_followers_get_their_claims_together_or_not_at_all(ledger: Ledger) -> None:
    ledger.claims.commit(begin(ledger, "other"), (gpu(host="gpu-2"),), FLEET)
    leader, follower = gpu(), gpu(host="gpu-2")
    before = held(ledger)
    with pytest.raises(Failure, match=r"gpu-2: accelerator 0: .*held by other\.v1") as caught:
        ledger.claims.commit(begin(ledger), (leader, follower), FLEET)
    assert caught.value.cause is Cause.CLAIM_CONFLICT
    assert held(ledger) == before


def test_what_makes_room_keeps_what_it_holds_on_other_hosts(ledger: Ledger) -> None:
    old, new = begin(ledger), begin(ledger)
    ledger.claims.commit(old, (gpu(), gpu(host="gpu-2")), FLEET)
    ledger.claims.commit(new, (gpu(),), FLEET, instead_of=old)
    holders = {claim.host: claim.release for claim in ledger.claims.all()}
    assert holders == {"gpu-1": new, "gpu-2": old}


def test_a_fleet_must_name_every_host_on_which_something_is_claimed(ledger: Ledger) -> None:
    ledger.claims.commit(begin(ledger, "other"), (gpu(host="gpu-2"),), FLEET)
    with pytest.raises(Failure, match=r"other\.v1 holds claims on host 'gpu-2'") as caught:
        ledger.claims.commit(begin(ledger), (gpu(),), a_fleet(a_host("gpu-1")))
    assert caught.value.cause is Cause.BAD_FLEET
    assert "retire other.v1 first" in caught.value.suggestion


def test_a_claim_does_not_change_how_the_releases_of_others_reach_a_machine(
    ledger: Ledger,
) -> None:
    ways = ("ssh://alice@gpu-1", "ssh://bob@gpu-1:2222", "ssh://bob@gpu-9")
    for way, expected in zip(ways, (ways[0], ways[0], ways[2]), strict=True):
        release = begin(ledger)
        there = a_fleet(a_host("gpu-1", address=way))
        ledger.claims.commit(release, [a_claim(host="gpu-1", release=release)], there)
        assert ledger.unseen_hosts.known_hosts() == {"gpu-1": expected}
        if way == ways[1]:  # then nothing is claimed on the former machine any more
            for row in ledger.releases.of_model("tiny"):
                ledger.releases.give_up(row.id, "no-fit")


def test_a_fleet_need_not_name_claimed_hosts_that_are_other_machines(ledger: Ledger) -> None:
    far = a_fleet(a_host("gpu-2", address="ssh://gpu-2"), a_host("gpu-3", address="ssh://gpu-3"))
    ledger.claims.commit(begin(ledger, "other"), (gpu(host="gpu-2"),), far)
    ledger.claims.commit(begin(ledger), (gpu(),), a_fleet(a_host("gpu-1")))
    assert {claim.host for claim in ledger.claims.all()} == {"gpu-1", "gpu-2"}


@pytest.mark.parametrize(
    ("name", "address", "message"),
    [
        ("gpu-9", "tcp://gpu-2:2376", r"'gpu-2', which this fleet does not name"),
        ("gpu-2", "ssh://gpu-9", r"'gpu-2' at gpu-2; this fleet has it at gpu-9"),
    ],
)
def test_a_claimed_machine_keeps_its_name(
    ledger: Ledger, name: str, address: str, message: str
) -> None:
    before = a_fleet(a_host("gpu-2", address="ssh://gpu-2"))
    ledger.claims.commit(begin(ledger, "other"), (gpu(host="gpu-2"),), before)
    with pytest.raises(Failure, match=message) as caught:
        ledger.claims.commit(
            begin(ledger), (gpu(host=name),), a_fleet(a_host(name, address=address))
        )
    assert caught.value.cause is Cause.BAD_FLEET


@pytest.mark.parametrize("times", [1, 2])
def test_claims_are_handed_back_however_often_it_is_tried(ledger: Ledger, times: int) -> None:
    old, new = begin(ledger), begin(ledger)
    ledger.claims.commit(old, (gpu(), port(40000)), FLEET)
    before = held(ledger)
    ledger.claims.commit(new, (gpu(), port(40001)), FLEET, instead_of=old)
    for _ in range(times):
        ledger.claims.hand_back(new, old, (gpu(), port(40000)))
    assert held(ledger) == before


@pytest.mark.parametrize("to", ["stopped", "superseded", "error", "nobody"])
def test_a_release_that_has_ended_gets_nothing_back(ledger: Ledger, to: str) -> None:
    """Else its claims would stay for ever: nobody looks after what has ended."""
    old = begin(ledger)
    if to == "error":
        ledger.releases.give_up(old, "no-fit")
    elif to != "nobody":
        for state in ("scheduled", "starting", "running", "stopping", to):
            ledger.releases.move(old, ReleaseState(state))
    new = begin(ledger)
    ledger.claims.commit(new, (gpu(),), FLEET)
    ledger.claims.hand_back(new, old if to != "nobody" else "", (gpu(),))
    assert held(ledger) == []


def test_freeing_twice_is_freeing_once(ledger: Ledger) -> None:
    release = begin(ledger)
    ledger.claims.commit(release, (gpu(),), FLEET)
    for _ in range(2):
        ledger.claims.hand_back(release, "", ())
    assert ledger.claims.all() == ()


def test_bytes_beyond_32_bits_are_kept(ledger: Ledger) -> None:
    release = begin(ledger)
    huge = a_fleet(a_host(ram_total=2**50, ram_free=2**50))
    ledger.claims.commit(release, (a_claim(amount=2**49),), huge)
    assert ledger.claims.all()[0].amount == 2**49
