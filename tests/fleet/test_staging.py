"""Models come to remote hosts: once each, whole, however often it is tried."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from docker.models.containers import Container

from moorage.adapters.docker.helper_input import start_with_input
from moorage.adapters.transfer import host_store
from moorage.common.failures import Cause, Failure
from moorage.engines.labels import LABEL_HELPER
from moorage.models.source import ModelFile
from tests.fleet.fleet import FleetHost, TestFleet
from tests.fleet.stores import (
    WEIGHTS,
    contents,
    model,
    on_hub,
    stage,
    store_on,
    there,
    workspace_on,
)
from tests.hub.faults import Fault
from tests.hub.server import Hub
from tests.waiting import until

pytestmark = [
    pytest.mark.docker,
    pytest.mark.fleet,
    pytest.mark.usefixtures("no_helper_is_left"),
]


@pytest.fixture
def hub(equipped: TestFleet) -> Iterator[Hub]:
    repos = {f"acme/model-{number}": contents() for number in range(4)}
    with Hub(repos, address=equipped.network.address) as hub:
        yield hub


def test_four_models_for_three_hosts_are_fetched_once_for_each(
    equipped: TestFleet, hub: Hub
) -> None:
    failed: list[Exception] = []

    def work(host: FleetHost, repo: str) -> None:
        try:
            wanted = on_hub(hub, repo)
            path = stage(store_on(equipped, host), wanted, hub.url)
            assert there(path) == hub.commits[repo][wanted.revision]
        except Exception as error:
            failed.append(error)

    # Each twice, as two flows that want the same model would.
    pairs = [(host, repo) for host in equipped.hosts for repo in hub.branches for _ in range(2)]
    threads = [threading.Thread(target=work, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(hub.requests_for(WEIGHTS)) == len(equipped.hosts) * len(hub.branches)


def test_a_killed_stager_costs_only_the_rest(equipped: TestFleet, hub: Hub) -> None:
    host, repo = equipped.hosts[0], "acme/slow"
    commit = hub.push(repo, contents(2_000_000))
    wanted, store = on_hub(hub, repo), store_on(equipped, host)
    hub.fail(WEIGHTS, Fault(pause=0.01))
    growing = workspace_on(host, "acme--slow", commit) / ".incomplete" / WEIGHTS
    caught: list[Failure] = []

    def work() -> None:
        try:
            stage(store, wanted, hub.url)
        except Failure as failure:
            caught.append(failure)

    thread = threading.Thread(target=work)
    thread.start()
    until(lambda: growing.exists() and growing.stat().st_size > 200_000, pause=0.01)
    (running,) = host.daemon.client().containers.list(filters={"label": LABEL_HELPER})
    running.kill()
    thread.join(60)
    assert [failure.cause for failure in caught] == [Cause.INTERRUPTED]
    had = growing.stat().st_size
    hub.fail(WEIGHTS, None)
    assert there(stage(store, wanted, hub.url)) == hub.commits[repo][commit]
    assert hub.requests_for(WEIGHTS)[-1].sent == 2_000_000 - had


def test_a_host_that_is_cut_off_goes_on_and_is_found_again(
    equipped: TestFleet, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_store, "LOST_SECONDS", 3.0)
    monkeypatch.setattr(host_store, "ASK_SECONDS", 2)
    host, repo = equipped.hosts[1], "acme/cut"
    hub.push(repo, contents(1_000_000))
    wanted, store = on_hub(hub, repo), store_on(equipped, host)
    hub.fail(WEIGHTS, Fault(pause=0.01))

    def cut() -> None:
        until(lambda: bool(hub.requests_for(WEIGHTS)))
        host.link.cut()

    cutter = threading.Thread(target=cut)
    cutter.start()
    try:
        began = time.monotonic()
        with pytest.raises(Failure) as caught:
            stage(store, wanted, hub.url)
        assert caught.value.cause is Cause.RUNTIME_UNAVAILABLE
        assert time.monotonic() - began < 30
    finally:
        cutter.join()
        host.link.mend()
    hub.fail(WEIGHTS, None)
    assert there(stage(store, wanted, hub.url)) == hub.commits[repo][wanted.revision]


def test_what_was_not_started_when_its_process_ends_is_not_waited_for(
    equipped: TestFleet, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, at_exit, left = equipped.hosts[0].daemon.client(), list[Callable[[], None]](), []

    def end(container: Container, job: str) -> None:
        for ending in at_exit:
            ending()
        left.append(client.containers.list(all=True))
        start_with_input(container, job)

    monkeypatch.setattr("atexit.register", at_exit.append)
    monkeypatch.setattr("atexit.unregister", at_exit.remove)
    monkeypatch.setattr(host_store, "start_with_input", end)
    with pytest.raises(Failure):
        stage(store_on(equipped, equipped.hosts[0]), on_hub(hub, "acme/model-1"), hub.url)
    assert (left, at_exit) == ([[]], [])


def test_a_full_disk_is_told_before_anything_is_fetched(equipped: TestFleet, hub: Hub) -> None:
    wanted = on_hub(hub, "acme/model-0")
    huge = ModelFile(name="huge.bin", size=1 << 60)
    wanted = wanted.model_copy(update={"files": (huge,), "revision": "f" * 40})
    with pytest.raises(Failure) as caught:
        stage(store_on(equipped, equipped.hosts[0]), wanted, hub.url)
    assert caught.value.cause is Cause.DISK_FULL
    assert hub.requests == []


def test_a_local_directory_is_sent_once(equipped: TestFleet, tmp_path: Path) -> None:
    files = contents()
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    wanted = model(f"file://{tmp_path}", "local-123456789abc", str(tmp_path), files)
    store = store_on(equipped, equipped.hosts[2])
    path = stage(store, wanted)
    assert there(path) == files
    (tmp_path / WEIGHTS).unlink()
    assert stage(store, wanted) == path
