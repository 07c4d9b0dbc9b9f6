"""Bringing a model to a host: one container for all who want it, and what its end tells."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import requests
from docker.errors import APIError, NotFound

from moorage.adapters.transfer import hand_over, host_store
from moorage.adapters.transfer.host_store import HostStore
from moorage.common.failures import Cause, Failure
from moorage.inventory.access import Access
from moorage.models.source import ModelFile, ResolvedModel
from tests.builders import a_model
from tests.log_stream import LogStream

STAGED = json.dumps({"result": "staged", "from": {"hub": 5}})
PRESENT = json.dumps({"result": "present"})


class OneContainer:
    """A daemon on which every container ends at once; it stands for container and client, too.

    Attributes:
        words: What each next container says at its end.
        left: One that ended before, and was left behind.
    """

    def __init__(self, *words: str, left: str | None = None, code: int = 0) -> None:
        self.words, self.log, self.code = list(words), left, code
        self.containers, self.api, self.made = self, self, 0

    @property
    def attrs(self) -> dict[str, Any]:
        return {"State": {"Status": "exited", "ExitCode": self.code}}

    def create_container_from_config(self, *_: Any) -> dict[str, str]:
        if self.log is not None:
            raise APIError("409", explanation='the name is "already in use"')
        self.log, self.made = self.words.pop(0), self.made + 1
        return {"Id": "one"}

    def get(self, _: str) -> OneContainer:
        if self.log is None:
            raise NotFound("gone")
        return self

    def logs(self, *, tail: int, **_: Any) -> LogStream:
        assert self.log is not None
        return LogStream("\n".join(self.log.splitlines()[-tail:]).encode())

    def remove(self, **_: Any) -> None:
        self.log = None


class Fed(OneContainer):
    """One that somebody else has made, and to which a directory is sent.

    Attributes:
        sizes: What is there of the file at each look; once none is left, it has ended.
    """

    def __init__(self, *sizes: int, words: str) -> None:
        super().__init__(words, left=STAGED)
        self.sizes = list(sizes)

    @property
    def attrs(self) -> dict[str, Any]:
        status = "created" if self.sizes else "exited"
        return {"State": {"Status": status, "ExitCode": 0}}

    def get_archive(self, path: str) -> tuple[Any, dict[str, int]]:
        if ".incomplete" not in path:
            raise NotFound("not there yet")
        return (piece for piece in (b"",)), {"size": self.sizes.pop(0)}


Bring = Callable[..., host_store.Staged]


@pytest.fixture
def bring(monkeypatch: pytest.MonkeyPatch) -> Bring:
    def bring(
        daemon: OneContainer,
        source: str = "hf://org/tiny",
        seconds: float = 5,
        start: Callable[..., None] = lambda *_: None,
    ) -> host_store.Staged:
        monkeypatch.setattr(host_store, "connect", lambda *_: daemon)
        monkeypatch.setattr(host_store, "start_with_input", start)
        model: ResolvedModel = a_model(source=source)
        store = HostStore(Access(address="ssh://gpu-1"), "helper:1", "/store/models")
        return store.stage(model, "{}\n", lambda *_: None, seconds)

    return bring


def test_what_a_container_did_is_told(bring: Bring) -> None:
    staged = bring(OneContainer(STAGED))
    assert staged.brought == {"hub": 5}
    assert staged.path.startswith("/store/models/org--tiny/")


def test_what_was_brought_long_ago_is_looked_at_again(bring: Bring) -> None:
    """Whoever waited for that container is gone; the model may be damaged or pruned since."""
    daemon = OneContainer(PRESENT, left=STAGED)
    assert bring(daemon).brought == {}
    assert daemon.made == 1


def test_what_failed_long_ago_is_tried_again(bring: Bring) -> None:
    old = json.dumps({"cause": "hub-unavailable", "detail": "x"})
    assert bring(OneContainer(STAGED, left=old)).brought == {"hub": 5}


def test_a_host_that_can_start_no_container_says_so_at_once(bring: Bring) -> None:
    """Podman answers such a start with a conflict, as it does where a name is taken."""
    daemon = OneContainer(*[STAGED] * 9)

    conflict = requests.Response()
    conflict.status_code = 409

    def refuse(*_: Any) -> None:
        raise APIError("409", conflict, "crun: cannot set up cgroups")

    with pytest.raises(Failure, match="crun: cannot set up cgroups"):
        bring(daemon, start=refuse)
    assert (daemon.made, daemon.log) == (1, None)


def test_who_still_sends_a_directory_is_waited_for(
    bring: Bring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_store, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(hand_over, "SENT_SECONDS", 0.0)
    daemon = Fed(1, 2, 3, words=PRESENT)
    assert bring(daemon, "file:///data/tiny").brought == {"hub": 5}
    assert daemon.made == 0


def test_who_sends_nothing_any_more_is_not(bring: Bring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_store, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(hand_over, "SENT_SECONDS", 0.0)
    monkeypatch.setattr(hand_over, "FED_SECONDS", 0.2)
    monkeypatch.setattr(host_store, "missing_files", lambda *_: {})
    daemon = Fed(*[7] * 1000, words=PRESENT)
    remove = daemon.remove

    def removed(**_: Any) -> None:
        daemon.sizes.clear()
        remove()

    monkeypatch.setattr(daemon, "remove", removed)
    assert bring(daemon, "file:///data/tiny").brought == {}
    assert daemon.made == 1


class Receiver(OneContainer):
    """One to which a directory is sent; it has nothing of it."""

    def __init__(self) -> None:
        super().__init__(STAGED)
        self.id, self.received = "one", 0

    def get_archive(self, path: str) -> tuple[Any, dict[str, int]]:
        raise NotFound(path)

    def put_archive(self, _container: str, _path: str, pieces: Iterable[bytes]) -> None:
        self.received += sum(map(len, pieces))


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[Receiver, HostStore, Any]:
    daemon = Receiver()
    for module in (host_store, hand_over):
        monkeypatch.setattr(module, "connect", lambda *_: daemon)
    monkeypatch.setattr(host_store, "start_with_input", lambda *_: None)
    monkeypatch.setattr(host_store, "run_helper", lambda *_: f"{10 << 20}\n")
    (tmp_path / "model.safetensors").write_bytes(bytes(3 << 20))
    files = (ModelFile(name="model.safetensors", size=3 << 20), ModelFile(name="empty", size=0))
    (tmp_path / "empty").touch()
    model = a_model(source=f"file://{tmp_path}", path=str(tmp_path), files=files)
    return daemon, HostStore(Access(address="ssh://gpu-1"), "helper:1", "/store/models"), model


def test_the_disk_of_a_host_has_room_before_a_directory_is_sent(
    receiver: tuple[Receiver, HostStore, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon, store, model = receiver
    monkeypatch.setattr(host_store, "run_helper", lambda *_: f"{3 << 20}\n")
    with pytest.raises(Failure, match=r"3\.0 MiB are free, 3\.1 MiB are needed") as caught:
        store.stage(model, "{}\n", lambda *_: None, 5)
    assert caught.value.cause is Cause.DISK_FULL
    assert (daemon.received, daemon.log) == (0, None)


def test_a_directory_that_is_sent_shows_its_progress(
    receiver: tuple[Receiver, HostStore, Any],
) -> None:
    daemon, store, model = receiver
    reported = list[tuple[int, int]]()
    store.stage(model, "{}\n", lambda *now: reported.append(now), 5)
    assert daemon.received > 3 << 20
    done = [one for one, _ in reported]
    assert done == sorted(done)
    assert {1 << 20, 2 << 20} <= {one >> 20 << 20 for one in done}
    assert reported[-1] == (3 << 20, 3 << 20)


def test_sending_a_directory_ends_at_the_deadline(
    receiver: tuple[Receiver, HostStore, Any],
) -> None:
    daemon, store, model = receiver
    with pytest.raises(Failure) as caught:
        store.stage(model, "{}\n", lambda *_: time.sleep(0.2), 0.1)
    assert caught.value.cause is Cause.DOWNLOAD_TIMEOUT
    assert (daemon.received, daemon.log) == (0, None)


def test_a_program_that_cannot_run_says_why(bring: Bring) -> None:
    with pytest.raises(Failure, match="no attribute 'file_digest'") as caught:
        bring(OneContainer("Traceback:\nmodule 'hashlib' has no attribute 'file_digest'", code=1))
    assert caught.value.cause is Cause.INTERRUPTED


@pytest.mark.parametrize("code", [0, 1])
@pytest.mark.parametrize(
    "words",
    [
        '{"done": "much"}',
        '{"done": -1}',
        '{"cause": "no-such-cause", "detail": "x"}',
        '{"cause": "disk-full", "detail": ["x"]}',
        '{"result": "staged", "from": ["hub"]}',
        '["result"]',
        "[" * 100_000,
    ],
)
def test_nonsense_of_a_helper_is_a_failure_of_its_host(bring: Bring, words: str, code: int) -> None:
    daemon = OneContainer(words, code=code)
    with pytest.raises(Failure) as caught:
        bring(daemon)
    assert caught.value.cause in (Cause.RUNTIME_UNAVAILABLE, Cause.INTERRUPTED)
    assert daemon.log is None, "the next deploy would find it again"


def test_a_forgotten_container_that_cannot_be_removed_is_not_tried_for_ever(
    bring: Bring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_store, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(hand_over, "FED_SECONDS", 0.0)
    daemon = Fed(*[1] * 999, words=PRESENT)
    monkeypatch.setattr(daemon, "remove", lambda **_: None)
    with pytest.raises(Failure) as caught:
        bring(daemon, seconds=0.5)
    assert caught.value.cause is Cause.DOWNLOAD_TIMEOUT
