"""Stopping what a release runs, on however many hosts."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from moorage.adapters.hosts.observation import Observation
from moorage.adapters.sources.local import revision_now
from moorage.common.failures import Cause, Failure
from moorage.engines.labels import LABEL_ROLE
from moorage.engines.launch import ContainerSpec, LaunchPlan
from moorage.engines.workload import Workload
from moorage.placement.role import Role
from moorage.releases.release_row import ReleaseRow
from moorage.spec import EngineName, RuntimeName
from tasks import workloads
from tasks.workloads import must_listen, start_part, stop_all
from tests.builders import a_container, a_plan, a_release, a_row, a_workload

pytestmark = pytest.mark.usefixtures("own_home")

GRACE = 30.0


def workload(replica: int, role: Role = Role.LEADER) -> Workload:
    name, host = f"moorage-tiny.v1-r{replica}-{role}", f"gpu-{replica}"
    return a_workload(name, role=role, replica=replica, host=host, runtime=RuntimeName.DOCKER)


REPLICAS = [workload(number) for number in range(3)]


def away(workload: Workload, _grace: float) -> None:
    raise Failure(Cause.RUNTIME_UNAVAILABLE, f"{workload.host} is silent")


def test_replicas_are_stopped_beside_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(len(REPLICAS), timeout=10)
    monkeypatch.setattr(workloads, "stop", lambda _workload, _grace: together.wait())
    stop_all(REPLICAS, GRACE)
    assert not together.broken


def test_in_a_replica_the_leader_goes_first_and_the_head_of_its_cluster_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopped: list[tuple[Role, float]] = []
    monkeypatch.setattr(workloads, "stop", lambda one, grace: stopped.append((one.role, grace)))
    stop_all([workload(0, role) for role in (Role.FOLLOWER, Role.RAY_HEAD, Role.LEADER)], GRACE)
    order = [Role.LEADER, Role.FOLLOWER, Role.RAY_HEAD]
    assert stopped == [(role, GRACE) for role in order]


def test_all_are_tried_and_all_that_did_not_stop_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def stop(one: Workload, grace: float) -> None:
        tried.append(one.host)
        if one.host != "gpu-1":
            away(one, grace)

    monkeypatch.setattr(workloads, "stop", stop)
    with pytest.raises(Failure) as caught:
        stop_all(REPLICAS, GRACE)
    assert sorted(tried) == ["gpu-0", "gpu-1", "gpu-2"]
    assert caught.value.detail == "gpu-0: gpu-0 is silent; gpu-2: gpu-2 is silent"


def test_the_failure_of_the_only_one_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "stop", away)
    with pytest.raises(Failure, match=r"silent$"):
        stop_all(REPLICAS[:1], GRACE)


def test_nothing_to_stop_is_no_failure() -> None:
    stop_all([], GRACE)


def reading(folder: Path, revision: str, address: str = "local") -> tuple[ReleaseRow, LaunchPlan]:
    """A release that reads a directory in place, and its plan."""
    files = {"source": f"file://{folder}", "revision": revision, "names": ["a.gguf"]}
    plan = a_plan(a_container(address=address))
    return a_row(a_release(plan=plan, local_files=[files])), plan


@pytest.mark.parametrize("change", ["another", "gone"])
def test_what_reads_other_files_than_it_ran_is_not_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, change: str
) -> None:
    started = list[str]()
    monkeypatch.setattr(workloads, "_must_be_free", lambda _: None)
    monkeypatch.setattr(workloads, "start", lambda _, spec: started.append(spec.name))
    weights = tmp_path / "a.gguf"
    weights.write_bytes(b"one")
    ran = revision_now(f"file://{tmp_path}", ["a.gguf"])
    start_part(*reading(tmp_path, ran))
    assert len(started) == 1
    if change == "another":
        weights.write_bytes(b"other")
    else:
        weights.unlink()
    now = revision_now(f"file://{tmp_path}", ["a.gguf"]) or "none"
    with pytest.raises(Failure) as caught:
        start_part(*reading(tmp_path, ran))
    assert caught.value.cause is Cause.SOURCE_MISSING
    assert caught.value.detail.endswith(f"ran revision {ran}; the source now has {now}")
    assert len(started) == 1
    start_part(*reading(tmp_path, ran, "ssh://gpu-1"))  # which has a copy
    assert len(started) == 2


class Runtime:
    """A container that runs or not, with a log."""

    def __init__(self, running: bool, log: str = "") -> None:
        self._running, self._log = running, log

    def observe(self, _workload: object) -> Observation:
        code = None if self._running else 1
        return Observation(running=self._running, exit_code=code, detail="the container exited")

    def logs(self, _workload: object, _tail: int) -> str:
        return self._log


@pytest.fixture
def listener() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def head(port: int) -> ContainerSpec:
    labels = {**a_container().labels, LABEL_ROLE: "ray-head"}
    return a_container(name="moorage-tiny.v1-r0-ray-head", host="a", port=port, labels=labels)


def seen(monkeypatch: pytest.MonkeyPatch, runtime: Runtime) -> None:
    monkeypatch.setattr(workloads, "runtime_for", lambda *_: runtime)
    monkeypatch.setattr(workloads, "POLL_SECONDS", 0.01)


def test_a_container_that_listens_is_not_asked_anything(
    monkeypatch: pytest.MonkeyPatch, listener: int
) -> None:
    seen(monkeypatch, Runtime(running=False))
    must_listen(head(listener), EngineName.VLLM)


@pytest.mark.parametrize(
    ("runtime", "cause", "detail"),
    [
        (Runtime(running=False), Cause.ENGINE_EXITED, "exited with code 1"),
        (
            Runtime(running=False, log="moorage-prepare: error: ray is not in the image"),
            Cause.PROGRAM_MISSING,
            "ray is not in the image",
        ),
        (Runtime(running=True), Cause.LOAD_TIMEOUT, "does not listen on 127.0.0.1:1 within 0 s"),
    ],
)
def test_one_that_never_listens_fails_by_role_and_host(
    monkeypatch: pytest.MonkeyPatch, runtime: Runtime, cause: Cause, detail: str
) -> None:
    seen(monkeypatch, runtime)
    with pytest.raises(Failure) as caught:
        must_listen(head(1), EngineName.VLLM, seconds=0)
    assert caught.value.cause == cause
    assert detail in caught.value.detail
    assert "ray-head moorage-tiny.v1-r0-ray-head on a" in caught.value.detail


@pytest.mark.parametrize(
    ("taken", "own", "begun"),
    [(False, False, True), (True, True, True), (True, False, False)],
    ids=["free", "a leftover of its own", "another program"],
)
def test_what_another_program_would_answer_for_is_not_started(
    monkeypatch: pytest.MonkeyPatch, listener: int, taken: bool, own: bool, begun: bool
) -> None:
    """Its answers would count as those of the engine, which dies later, when it binds the port."""
    seen(monkeypatch, Runtime(running=own))
    started = list[str]()
    monkeypatch.setattr(workloads, "start", lambda _release, spec: started.append(spec.name))
    spec = a_container(port=listener if taken else 1)
    part = a_plan(spec)
    refusal = pytest.raises(Failure, match=f"another program listens on 127.0.0.1:{listener}")
    with nullcontext() if begun else refusal:
        start_part(a_row(), part)
    assert started == [spec.name] * begun
