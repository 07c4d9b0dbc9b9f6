"""On which hosts a scheduled run wakes a model, with the parameters of its schedule."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from flows import wake_model as flow
from moorage.inventory.fleet import Fleet, Host
from moorage.inventory.snapshot import FleetSnapshot
from moorage.operations.schedules import schedules_of
from moorage.policy.request import Channel, Submission
from moorage.releases.release_row import ASLEEP
from moorage.releases.states import ReleaseState
from tasks.context import ledger
from tests.builders import REVISION, a_claim, a_fleet, a_host, a_placement, a_release, a_spec
from tests.policies import written_policy
from tests.tasks.test_compare import ran

S = ReleaseState
SPEC = a_spec(schedule={"awake": "0 7 * * *"})
ONE = {"name": "gpu-1", "address": "ssh://a@10.1.0.1", "bind": "10.1.0.1", "labels": {"pool": "a"}}
HOSTS = "hosts:\n- {name: gpu-1, address: ssh://a@10.1.0.1, bind: 10.1.0.1, labels: {pool: a}}\n"
MORE = "- {name: gpu-2, address: ssh://a@10.1.0.2, bind: 10.1.0.2}\n"
BOTH = ["gpu-1", "gpu-2"]


@pytest.fixture
def surveyed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_home: None) -> list[Fleet]:  # noqa: ARG001
    """The fleets on which models were woken, by a flow without Prefect."""
    found = list[Fleet]()

    async def survey(fleet: Fleet) -> FleetSnapshot:
        found.append(fleet)
        return a_fleet()

    async def wake(*_: object) -> None:
        """It serves again."""

    @asynccontextmanager
    async def flow_context(*_: object) -> AsyncIterator[SimpleNamespace]:
        yield SimpleNamespace(flow_run_id="")

    for name, stand_in in (("survey", survey), ("wake", wake), ("flow_context", flow_context)):
        monkeypatch.setattr(flow, name, stand_in)
    monkeypatch.delenv("MOORAGE_POLICY", raising=False)
    monkeypatch.setenv("PWD", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return found


def fall_asleep(
    *hosts: Host, channel: Channel = Channel.CLI, seats: Sequence[str] = ("gpu-1",)
) -> None:
    """Let a model sleep that was deployed on these hosts of a fleet, in these seats."""
    own = ledger().releases
    placement = a_placement(SPEC, a_host())
    places = tuple(placement.seats[0].model_copy(update={"host": host}) for host in seats)
    release = own.begin(SPEC, REVISION, "")
    for state in (S.SCHEDULED, S.STARTING):
        own.move(release, state)
    made = {"hosts": hosts, "placement": placement.model_copy(update={"seats": places})}
    own.take_over(a_release(release, spec=SPEC, submission=Submission(channel=channel), **made))
    for state in (S.STOPPING, S.ASLEEP):
        own.move(release, state, ASLEEP)


async def wake_on_time() -> str:
    """Run the flow as its schedule does; its last message."""
    (schedule,) = schedules_of("tiny", SPEC.schedule)
    return (await flow.wake_model.fn(**schedule.parameters)).message or ""


@pytest.mark.parametrize(
    ("rules", "seats", "names"),
    [
        ("", BOTH, BOTH),
        ("", ["gpu-1"], ["gpu-1"]),
        ("", ["gpu-9"], []),
        ("api: {host_labels: {pool: [a]}}\n", BOTH, ["gpu-1"]),
    ],
)
async def test_a_host_that_joins_the_fleet_stops_no_scheduled_wake(
    surveyed: list[Fleet], tmp_path: Path, rules: str, seats: list[str], names: list[str]
) -> None:
    """A host without a seat is not surveyed, since it may be away."""
    file = tmp_path / "fleet.yaml"
    file.write_text(HOSTS)
    written_policy(tmp_path / "deployments" / "policy.yaml", f"fleet: {file}\n{rules}")
    fall_asleep(channel=Channel.API, seats=seats)
    file.write_text(HOSTS + MORE)
    assert "serves again" in await wake_on_time()
    assert [[host.name for host in fleet.hosts] for fleet in surveyed] == [names]


async def test_a_site_without_a_fleet_wakes_a_model_on_the_hosts_of_its_record(
    surveyed: list[Fleet],
) -> None:
    fall_asleep(Host.model_validate(ONE))
    assert "serves again" in await wake_on_time()
    assert [host.address for fleet in surveyed for host in fleet.hosts] == [ONE["address"]]


async def test_hosts_that_a_run_may_not_bring_any_more_wake_nothing(surveyed: list[Fleet]) -> None:
    fall_asleep(Host.model_validate(ONE), channel=Channel.API)
    assert "`api.own_fleet`" in await wake_on_time()
    assert surveyed == []


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ("accelerators: 0", "`api.accelerators`"),
        ("owner_accelerators: 0", "`api.owner_accelerators`"),
        ("owner_accelerators: 1", "serves again"),
    ],
)
async def test_a_wake_keeps_to_the_limits_with_what_it_held(
    surveyed: list[Fleet], tmp_path: Path, limits: str, said: str
) -> None:
    written_policy(tmp_path / "deployments" / "policy.yaml", f"api: {{own_fleet: true, {limits}}}")
    submission, placement = Submission(channel=Channel.API), a_placement(SPEC, a_host())
    ran(S.STOPPING, S.ASLEEP, spec=SPEC, submission=submission, placement=placement)
    assert said in await wake_on_time()
    assert bool(surveyed) == ("again" in said)


@pytest.mark.usefixtures("surveyed")
async def test_a_wake_changes_how_hosts_are_reached_once_the_policy_has_allowed_it(
    tmp_path: Path,
) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(HOSTS)
    written_policy(tmp_path / "deployments" / "policy.yaml", f"fleet: {file}\n")
    other = ledger().releases.begin(a_spec(name="other"), REVISION, "")
    before = "ssh://former@10.1.0.1"
    there = a_fleet(a_host("gpu-1", address=before))
    ledger().claims.commit(other, [a_claim(host="gpu-1", release=other)], there)
    known = ledger().unseen_hosts.known_hosts
    assert "neither runs nor sleeps" in await wake_on_time()
    assert known() == {"gpu-1": before}
    fall_asleep(channel=Channel.API)
    assert "serves again" in await wake_on_time()
    assert known() == {"gpu-1": ONE["address"]}
