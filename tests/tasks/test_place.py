"""Others claim between the look and the claim; then it is looked again, a few times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest

from moorage.adapters.ledger import Ledger
from moorage.common.failures import Cause, Failure
from moorage.inventory.claims import Claim, Resource
from moorage.inventory.fleet import Fleet, Host, StaticAccelerator
from moorage.inventory.snapshot import FleetSnapshot
from moorage.placement.engine import Engines
from moorage.placement.placement import Analyzed, Placed, Placement
from moorage.placement.propose import propose
from moorage.releases.states import ReleaseState
from moorage.spec import ModelSpec
from tasks import place as module
from tasks.cleanup import recover
from tasks.context import ledger, settings
from tasks.place import CLAIM_ATTEMPTS, place
from tasks.replace import free_claims
from tasks.survey import survey_without_abandoned, take_snapshot
from tests.adapters.ledger.team import Team
from tests.builders import REVISION, a_fleet, a_host, a_model, a_profile, a_release, a_spec

ENGINE = {"name": "vllm", "runtime": "process", "command": ["vllm", "serve"]}
SPEC = a_spec(engine=ENGINE)
ACCELERATOR = StaticAccelerator.model_validate({"index": 0, "memory": "80GiB"})
FLEET = Fleet(hosts=(Host(name="gpu-1", runtimes=("process",), accelerators=(ACCELERATOR,)),))


@pytest.fixture(scope="module")
def rival() -> Iterator[Team]:
    """Another process."""
    team = Team(1)
    yield team
    team.end()


@pytest.fixture(autouse=True)
def _no_artifacts(own_home: None, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    async def nothing(*_: Any) -> None:
        """Artifacts need a server."""

    monkeypatch.setattr(module, "show_markdown", nothing)


def claim(_worker: int, url: str, claims: Sequence[Claim]) -> str:
    """What the other process does: claim these for a release of its own."""
    with closing(Ledger(url)) as own:
        release = own.releases.begin(a_spec(name="rival"), REVISION, "")
        own.claims.commit(release, claims, a_fleet(a_host("gpu-1")))
        return release


@pytest.fixture
def outrun(
    monkeypatch: pytest.MonkeyPatch, rival: Team
) -> Callable[[int], list[tuple[Placement, FleetSnapshot]]]:
    """Lets the other process take the proposed port, so many times; what was proposed on what."""

    def arrange(times: int) -> list[tuple[Placement, FleetSnapshot]]:
        proposals: list[tuple[Placement, FleetSnapshot]] = []

        def propose_and_be_late(
            subject: Any, snapshot: FleetSnapshot, engines: Engines, running: str
        ) -> Placement:
            placement = propose(subject, snapshot, engines, running)
            proposals.append((placement, snapshot))
            if len(proposals) <= times:
                ports = [one for one in placement.claims if one.resource == Resource.PORT]
                rival(claim, settings().ledger, ports)
            return placement

        monkeypatch.setattr(module, "propose", propose_and_be_late)
        return proposals

    return arrange


async def placed(release: str, spec: ModelSpec = SPEC, sleeper: str = "") -> Placed:
    snapshot = await take_snapshot(FLEET)
    analyzed = Analyzed(spec, a_model(), a_profile())
    return await place.fn(analyzed, FLEET, snapshot, release, "", sleeper=sleeper)


@pytest.mark.parametrize("times", [0, 1, CLAIM_ATTEMPTS - 1])
async def test_who_was_too_late_looks_again_and_takes_something_else(
    outrun: Callable[[int], list[tuple[Placement, FleetSnapshot]]], times: int
) -> None:
    proposals = outrun(times)
    release = ledger().releases.begin(SPEC, REVISION, "")
    found = await placed(release)

    seen = [{one.release for one in looked.host("gpu-1").claims} for _, looked in proposals]
    assert seen == [{f"rival.v{number + 1}" for number in range(at)} for at in range(times + 1)]
    assert (found.placement, found.snapshot, found.release) == (*proposals[-1], release)
    own = [one for one in ledger().claims.all() if one.release == release]
    assert {(one.resource, one.index, one.amount) for one in own} == {
        (one.resource, one.index, one.amount) for one in found.placement.claims
    }
    assert ledger().releases.get(release).state == ReleaseState.SCHEDULED


async def test_who_is_always_too_late_gives_up_and_holds_nothing(
    outrun: Callable[[int], list[tuple[Placement, FleetSnapshot]]],
) -> None:
    proposals = outrun(100)
    release = ledger().releases.begin(SPEC, REVISION, "")
    with pytest.raises(Failure, match="held by rival") as caught:
        await placed(release)
    assert caught.value.cause is Cause.CLAIM_CONFLICT
    assert len(proposals) == CLAIM_ATTEMPTS
    assert release not in {one.release for one in ledger().claims.all()}
    assert ledger().releases.get(release).state == ReleaseState.PENDING


async def test_a_release_that_sleeps_gives_up_its_fixed_port_until_its_successor_fails() -> None:
    spec, own = a_spec(engine=ENGINE, port=8000), ledger().releases
    sleeper = own.begin(spec, REVISION, "")
    first = await placed(sleeper, spec)
    own.move(sleeper, ReleaseState.STARTING)
    own.take_over(a_release(sleeper, spec=spec, placement=first.placement))
    own.move(sleeper, ReleaseState.STOPPING)
    own.end(sleeper, ReleaseState.ASLEEP)
    assert (kept := port_holders()) == {8000: sleeper}
    surveyed = await survey_without_abandoned(FLEET, spec)
    assert surveyed.hosts[0].claims == (), "a plan finds what its deploy will find"

    new = own.begin(spec, REVISION, "")
    await placed(new, spec, sleeper)
    assert port_holders() == {8000: new}
    free_claims(new, own.get(sleeper))
    assert port_holders() == kept

    killed = own.begin(spec, REVISION, "")
    await placed(killed, spec, sleeper)
    recover(own.get(killed))
    assert port_holders() == kept


def port_holders() -> dict[int, str]:
    claims = ledger().claims.all()
    return {one.index: one.release for one in claims if one.resource == Resource.PORT}
