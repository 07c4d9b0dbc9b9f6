"""What is known of a release when ledger and hosts are compared."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.engines.launch import planned_workload
from moorage.engines.workload import Workload
from moorage.inventory.fleet import Avoided, Fleet
from moorage.operations.reconcile.counts import RUN, ReconcileCount
from moorage.operations.reconcile.decisions import decide
from moorage.operations.reconcile.observed_workload import ObservedWorkload, Place
from moorage.releases.release_row import ASLEEP, ReleaseRow, successor_of
from moorage.releases.states import ReleaseState
from tasks import compare, observe_fleet
from tasks.addresses import follow
from tasks.context import ledger
from tasks.observe_fleet import _cluster_state, _served_successors
from tasks.repair import forget_hosts, record_run
from tests.builders import REVISION, a_claim, a_container, a_fleet, a_host, a_plan, a_spec
from tests.operations.reconcile.worlds import found
from tests.tasks.conftest import AsSite
from tests.tasks.hosts_away import hosts_without
from tests.tasks.test_compare import failed, ran

pytestmark = pytest.mark.usefixtures("own_home")

S = ReleaseState


@pytest.mark.parametrize(
    ("since", "took_over"),
    [((), True), ((S.STOPPING, S.STOPPED), True), ((S.ERROR,), True), (None, False)],
)
def test_a_successor_that_served_once_took_over_whatever_became_of_it(
    since: tuple[ReleaseState, ...] | None, took_over: bool
) -> None:
    """The host of the old one may be away for as long as all of that takes."""
    old = ran()
    ledger().releases.move(old, S.STOPPING, "superseded by tiny.v2")
    if since is None:
        failed()
    else:
        assert ran(*since) == "tiny.v2"
    row = ledger().releases.get(old)
    assert successor_of(row) == "tiny.v2"
    assert _served_successors([row]) == ({"tiny.v2"} if took_over else set())


@pytest.mark.parametrize(
    ("looked", "counts"),
    [
        (timedelta(minutes=1), True),
        (timedelta(hours=1), True),
        (timedelta(hours=60), False),
        (timedelta(hours=-60), False),
        (None, False),
    ],
    ids=["each minute", "each hour", "over a weekend", "by a clock that was ahead", "never"],
)
def test_a_host_is_away_only_for_as_long_as_somebody_kept_looking(
    monkeypatch: pytest.MonkeyPatch, looked: timedelta | None, counts: bool
) -> None:
    def away(*_: object) -> None:
        raise Failure(Cause.RUNTIME_UNAVAILABLE, "no route")

    monkeypatch.setattr(observe_fleet, "list_workloads", away)
    now = datetime.now(UTC)
    since = now - timedelta(hours=70)
    ledger().unseen_hosts.keep({"gpu-1": (since, "no route")}, set())
    if looked is not None:
        ledger().reconcile_counts.add([ReconcileCount(kind=RUN, done=1, latest=now - looked)])
    host = {"name": "gpu-1", "address": "ssh://gpu-1", "bind": "10.0.0.11"}
    cluster = _cluster_state(Fleet.model_validate({"hosts": [host]}), keep=True)
    (seen,) = (one for one in cluster.observations if one.place.host == "gpu-1")
    assert seen.unreachable_since == (since if counts else cluster.now)
    assert ledger().unseen_hosts.unseen() == {"gpu-1": seen.unreachable_since}


def fleet_of(**sites: str) -> Fleet:
    """A fleet of remote hosts with the site of each; empty = none."""
    hosts = [
        {
            "name": name,
            "address": f"ssh://deploy@{name}",
            "bind": f"10.0.0.{number}",
            "labels": {"site": site} if site else {},
        }
        for number, (name, site) in enumerate(sites.items(), 1)
    ]
    return Fleet.model_validate({"hosts": hosts})


def serves_on(host: str, address: str = "") -> ReleaseRow:
    """A release that serves from a container of a host, which the ledger knows at its address."""
    address = address or f"ssh://deploy@{host}"
    container = a_container(host=host, address=address, runtime="docker")
    release = ran(plan=a_plan(container, release="tiny.v1"))
    workload = planned_workload(container).model_copy(update={"identity": "c1"})
    ledger().workloads.put(release, workload)
    other = ledger().releases.begin(a_spec(name="other"), REVISION, "")
    claims = [a_claim(host=host, release=other)]
    ledger().claims.commit(other, claims, a_fleet(a_host(host, address=address)))
    ledger().releases.give_up(other, "no-fit")
    return ledger().releases.get(release)


class Hosts:
    """What runs at which address, and which hosts or addresses do not answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.silent = set[str]()
        self.runs = dict[str, ObservedWorkload]()
        self.asked = list[Place]()
        monkeypatch.setattr(observe_fleet, "list_workloads", self._list)

    def _list(self, place: Place, *_: object) -> tuple[ObservedWorkload, ...]:
        self.asked.append(place)
        if self.silent & {place.host, place.address}:
            raise Failure(Cause.HOST_UNTRUSTED, "Host key verification failed.")
        return (self.runs[place.address],) if place.address in self.runs else ()


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> Hosts:
    return Hosts(monkeypatch)


@pytest.mark.parametrize(
    ("site", "fleet", "silent", "expected"),
    [
        ("site-a", fleet_of(a="site-a", b="site-b"), True, []),
        ("site-a", fleet_of(a="site-a", b="site-b"), False, []),
        ("site-a", fleet_of(a="site-a"), True, []),
        ("site-a", fleet_of(a="site-a"), False, ["restart"]),
        ("site-a", fleet_of(a="site-a", b=""), True, ["mark unreachable"]),
        ("site-b", fleet_of(a="site-a", b="site-b"), True, ["mark unreachable"]),
        ("", fleet_of(a="site-a", b="site-b"), True, ["mark unreachable"]),
        ("", fleet_of(a="site-a"), True, ["mark unreachable"]),
    ],
)
def test_a_reconcile_of_a_site_decides_nothing_about_the_hosts_of_another(
    monkeypatch: pytest.MonkeyPatch,
    hosts: Hosts,
    site: str,
    fleet: Fleet,
    silent: bool,
    expected: list[str],
) -> None:
    monkeypatch.setenv("MOORAGE_SITE", site)
    serves_on("b")
    hosts.silent = {"b"} if silent else set()
    cluster = _cluster_state(fleet, keep=True)
    assert [one.kind for one in decide(cluster)] == expected
    of_another = {one.name for one in fleet.hosts if one.labels.get("site", site) != site}
    assert not site or not of_another & {place.host for place in hosts.asked}
    assert ("b" in ledger().unseen_hosts.unseen()) == (expected == ["mark unreachable"])


@pytest.mark.usefixtures("hosts")
@pytest.mark.parametrize(("avoided", "expected"), [("b", "replace"), ("a", "restart")])
def test_what_died_on_a_host_that_the_fleet_avoids_is_deployed_elsewhere(
    avoided: str, expected: str
) -> None:
    serves_on("b")
    fleet = fleet_of(a="", b="").model_copy(update={"avoid": (Avoided(host=avoided),)})
    cluster = _cluster_state(fleet, keep=True)
    assert [one.kind for one in decide(cluster)] == [expected]
    assert cluster.hosts == {"a", "b"} - {avoided}


def test_a_site_that_was_away_does_not_count_the_reconciles_of_others(
    monkeypatch: pytest.MonkeyPatch, hosts: Hosts
) -> None:
    since = datetime.now(UTC) - timedelta(hours=70)
    ledger().unseen_hosts.keep({"b": (since, "no route")}, set())
    hosts.silent = {"b"}
    seen = []
    for site in ("site-a", "site-b"):
        monkeypatch.setenv("MOORAGE_SITE", site)
        record_run(())
        monkeypatch.setenv("MOORAGE_SITE", "site-b")
        cluster = _cluster_state(fleet_of(a="site-a", b="site-b"), keep=False)
        (one,) = (one for one in cluster.observations if one.place.host == "b")
        seen.append(one.unreachable_since == since)
    assert seen == [False, True]


FORMER = "ssh://deploy@10.0.0.11?key=FLEET_KEY"


@pytest.mark.parametrize(
    ("fields", "address", "identity", "follows"),
    [
        ({"ssh": {"key": "KEY_2026"}}, "ssh://deploy@10.0.0.11?key=KEY_2026", "c1", True),
        ({"address": "ssh://root@10.0.0.11"}, "ssh://root@10.0.0.11", "c1", True),
        ({"address": "ssh://deploy@10.0.0.12"}, "ssh://deploy@10.0.0.12", "c1", True),
        ({"address": "ssh://deploy@10.0.0.12"}, "ssh://deploy@10.0.0.12", "c2", False),
    ],
    ids=["another key", "another user", "another address", "another machine"],
)
@pytest.mark.parametrize("keep", [True, False])
def test_a_release_is_reached_as_the_fleet_names_its_host_now(
    hosts: Hosts,
    as_site: AsSite,
    keep: bool,
    fields: dict[str, Any],
    address: str,
    identity: str,
    follows: bool,
) -> None:
    old = serves_on("gpu-1", FORMER)
    hosts.silent = {FORMER}
    hosts.runs[address] = found(old.id, name=old.workloads[0].name, identity=identity)
    host = {"name": "gpu-1", "address": "ssh://deploy@10.0.0.11", "bind": "10.0.0.11", **fields}
    cluster = _cluster_state(as_site(host), keep=keep)
    expected = [] if follows else ["mark unreachable"]
    assert [one.kind for one in decide(cluster) if one.kind != "probe"] == expected
    row = ledger().releases.get(old.id)
    assert row.plan
    addresses = {one.address for one in row.workloads} | {
        one.address for one in row.plan.containers
    }
    assert addresses == {address if follows and keep else FORMER}
    [shown] = [one.row for one in ledger().overviews.current() if one.row.id == old.id]
    assert {one.address for one in shown.workloads} == addresses
    assert ledger().unseen_hosts.unseen().keys() == ({"gpu-1"} if keep and not follows else set())


async def test_a_deploy_reaches_what_serves_as_its_fleet_says(
    monkeypatch: pytest.MonkeyPatch, as_site: AsSite
) -> None:
    old = serves_on("gpu-1", FORMER)
    seen = list[str]()

    def runtime_for(workload: Workload, _settings: object) -> Any:
        seen.append(workload.address)
        return hosts_without((), ready=True)()

    monkeypatch.setattr(compare, "runtime_for", runtime_for)
    host = {"name": "gpu-1", "address": "ssh://root@10.0.0.11", "bind": "10.0.0.11"}
    fleet = as_site(host)
    row, healthy = await compare.serving(a_spec(), fleet)
    assert row
    assert (row.id, healthy, seen) == (old.id, True, ["ssh://root@10.0.0.11"])
    await follow(fleet)
    assert ledger().releases.get(old.id).workloads == row.workloads


@pytest.mark.usefixtures("hosts")
@pytest.mark.parametrize("engines_run", [True, False])
def test_a_release_that_sleeps_is_compared_with_its_hosts_while_its_engines_run(
    engines_run: bool,
) -> None:
    row = serves_on("b")
    ledger().releases.move(row.id, S.STOPPING, ASLEEP)
    ledger().releases.move(row.id, S.ASLEEP, ASLEEP)
    if not engines_run:
        ledger().workloads.drop("moorage-tiny.v1-r0-leader")
    cluster = _cluster_state(fleet_of(b=""), keep=True)
    assert [one.id for one in cluster.releases] == [row.id] * engines_run
    assert cluster.sleepers == {"tiny": row.id}


HOLDS_NOTHING = "ssh://deploy@scrapped"


@pytest.mark.parametrize(
    ("fleet", "silent_hours", "claimed", "forgotten"),
    [
        (fleet_of(b=""), 25, False, True),
        (fleet_of(b=""), 23, False, False),
        (fleet_of(b=""), 0, False, False),
        (fleet_of(b=""), 25, True, False),
        (fleet_of(b="", scrapped=""), 25, False, False),
        (Fleet(), 25, False, False),
    ],
    ids=["gone", "not for long", "answers", "claimed", "named", "no fleet"],
)
def test_a_host_that_is_gone_is_not_waited_for_any_longer(
    hosts: Hosts, fleet: Fleet, silent_hours: float, claimed: bool, forgotten: bool
) -> None:
    serves_on("scrapped")
    now = datetime.now(UTC)
    if silent_hours:
        hosts.silent = {"scrapped"}
        ledger().unseen_hosts.keep({"scrapped": (now - timedelta(hours=silent_hours), "")}, set())
        record_run(())
    cluster = _cluster_state(fleet, keep=True)
    forget_hosts(fleet, cluster)
    assert "scrapped" in ledger().unseen_hosts.known_hosts(), "a release is there"
    ledger().workloads.drop("moorage-tiny.v1-r0-leader")
    ledger().releases.end("tiny.v1", S.ERROR)
    if claimed:
        other = ledger().releases.begin(a_spec(name="asleep"), REVISION, "")
        there = a_fleet(a_host("scrapped", address=HOLDS_NOTHING))
        ledger().claims.commit(other, [a_claim(host="scrapped", release=other)], there)
    forget_hosts(fleet, _cluster_state(fleet, keep=True))
    assert ("scrapped" not in ledger().unseen_hosts.known_hosts()) == forgotten
    if forgotten:
        assert ledger().unseen_hosts.unseen() == {}
        hosts.asked.clear()
        _cluster_state(fleet, keep=True)
        assert "scrapped" not in {place.host for place in hosts.asked}


@pytest.mark.usefixtures("hosts")
def test_the_former_name_of_a_host_is_forgotten() -> None:
    serves_on("b", "ssh://deploy@gpu-b")
    ledger().workloads.drop("moorage-tiny.v1-r0-leader")
    ledger().releases.end("tiny.v1", S.ERROR)
    host = {"name": "node-b", "address": "ssh://root@gpu-b", "bind": "10.0.0.1"}
    fleet = Fleet.model_validate({"hosts": [host]})
    forget_hosts(fleet, _cluster_state(fleet, keep=True))
    assert ledger().unseen_hosts.known_hosts() == {}
