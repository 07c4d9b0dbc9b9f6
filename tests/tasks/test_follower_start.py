"""What others of a replica need is waited for, and its own end is told."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from moorage.adapters.hosts.observation import Observation
from moorage.common.failures import Cause, Failure
from moorage.engines.launch import LABEL_ROLE, ContainerSpec
from moorage.spec import EngineName
from tasks import follower_start as joining
from tasks.follower_start import must_listen
from tests.builders import a_container


class Runtime:
    """A container that runs or not, with a log."""

    def __init__(self, running: bool, log: str = "") -> None:
        self._running, self._log = running, log

    def observe(self, _workload: object) -> Observation:
        code = None if self._running else 1
        return Observation(running=self._running, exit_code=code, detail="the container is exited")

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
    monkeypatch.setattr(joining, "runtime_for", lambda *_: runtime)
    monkeypatch.setattr(joining, "POLL_SECONDS", 0.01)


def test_a_container_that_listens_is_not_asked_anything(
    monkeypatch: pytest.MonkeyPatch, listener: int
) -> None:
    seen(monkeypatch, Runtime(running=False))
    must_listen(head(listener), EngineName.VLLM)


@pytest.mark.parametrize(
    ("runtime", "cause", "said"),
    [
        (Runtime(running=False), Cause.ENGINE_EXITED, "exit code 1"),
        (
            Runtime(running=False, log="moorage-prepare: error: ray is not in the image"),
            Cause.PROGRAM_MISSING,
            "ray is not in the image",
        ),
        (Runtime(running=True), Cause.LOAD_TIMEOUT, "does not listen on 127.0.0.1:1 within 0 s"),
    ],
)
def test_one_that_never_listens_fails_by_role_and_host(
    monkeypatch: pytest.MonkeyPatch, runtime: Runtime, cause: Cause, said: str
) -> None:
    seen(monkeypatch, runtime)
    with pytest.raises(Failure) as caught:
        must_listen(head(1), EngineName.VLLM, seconds=0)
    assert caught.value.cause == cause
    assert said in caught.value.detail
    assert "ray-head moorage-tiny.v1-r0-ray-head on a" in caught.value.detail
