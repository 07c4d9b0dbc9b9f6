"""Stopping what a release runs, on however many hosts."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from moorage.common.failures import Cause, Failure
from moorage.engines.launch import Workload
from moorage.placement.placement import Role
from moorage.spec import RuntimeName
from tasks import launch
from tasks.launch import stop_all

GRACE = 30.0


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path))


def workload(replica: int, role: Role = Role.LEADER) -> Workload:
    return Workload(
        name=f"moorage-tiny.v1-r{replica}-{role}",
        release="tiny.v1",
        role=role,
        replica=replica,
        host=f"gpu-{replica}",
        address="local",
        runtime=RuntimeName.DOCKER,
    )


REPLICAS = [workload(number) for number in range(3)]


def away(workload: Workload, _grace: float) -> None:
    raise Failure(Cause.RUNTIME_UNAVAILABLE, f"{workload.host} is silent")


def test_replicas_are_stopped_beside_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(len(REPLICAS), timeout=10)
    monkeypatch.setattr(launch, "stop", lambda _workload, _grace: together.wait())
    stop_all(REPLICAS, GRACE)
    assert not together.broken


def test_in_a_replica_the_leader_goes_first_and_the_head_of_its_cluster_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopped: list[tuple[Role, float]] = []
    monkeypatch.setattr(launch, "stop", lambda one, grace: stopped.append((one.role, grace)))
    stop_all([workload(0, role) for role in (Role.FOLLOWER, Role.RAY_HEAD, Role.LEADER)], GRACE)
    order = [Role.LEADER, Role.FOLLOWER, Role.RAY_HEAD]
    assert stopped == [(role, GRACE) for role in order]


def test_all_are_tried_and_all_that_did_not_stop_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def stop(one: Workload, grace: float) -> None:
        tried.append(one.host)
        if one.host != "gpu-1":
            away(one, grace)

    monkeypatch.setattr(launch, "stop", stop)
    with pytest.raises(Failure) as caught:
        stop_all(REPLICAS, GRACE)
    assert sorted(tried) == ["gpu-0", "gpu-1", "gpu-2"]
    assert caught.value.detail == "gpu-0: gpu-0 is silent; gpu-2: gpu-2 is silent"


def test_the_failure_of_the_only_one_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "stop", away)
    with pytest.raises(Failure, match=r"silent$"):
        stop_all(REPLICAS[:1], GRACE)


def test_nothing_to_stop_is_no_failure() -> None:
    stop_all([], GRACE)
