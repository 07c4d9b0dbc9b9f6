"""Several flows stage the same model, and some of them are killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from moorage.adapters.sources.remote_source import RemoteSource
from moorage.adapters.sources.store import ModelStore
from moorage.adapters.system.parallel import TICK_SECONDS
from moorage.models.assets import Asset
from moorage.models.source import ResolvedModel
from tests.adapters.sources.conftest import REPO
from tests.hub.faults import Fault
from tests.hub.server import Hub
from tests.hub.tiny import model
from tests.waiting import until

Make = Callable[..., RemoteSource]
SHARDS = ("model-1-of-2.safetensors", "model-2-of-2.safetensors")

STAGE = """
import json, sys
from pathlib import Path
from moorage.adapters.sources.hub_client import HubClient
from moorage.adapters.sources.remote_source import RemoteSource
from moorage.adapters.sources.store import ModelStore
from moorage.models.source import ResolvedModel

task = json.load(sys.stdin)
client = HubClient(task["repo"], task["hub"])
source = RemoteSource(client, ModelStore(Path(task["models"]), task["repo"]))
source.stage(ResolvedModel.model_validate(task["model"]), lambda done, total: None)
"""


@contextmanager
def elsewhere(hub: Hub, models: Path, found: ResolvedModel) -> Iterator[subprocess.Popen[str]]:
    """Stages the model in a process of its own."""
    task = {"repo": REPO, "hub": hub.url, "models": str(models), "model": found.model_dump()}
    with subprocess.Popen(
        [sys.executable, "-c", STAGE],
        stdin=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    ) as process:
        assert process.stdin
        process.stdin.write(json.dumps(task))
        process.stdin.close()
        try:
            yield process
        finally:
            process.kill()


def test_after_a_kill_only_the_rest_is_downloaded(
    hub: Hub, source: Make, asset: Asset, tmp_path: Path, store: ModelStore
) -> None:
    found = source().resolve(asset)
    hub.requests.clear()
    hub.fail(SHARDS[1], Fault(pause=0.02))
    growing = store.incomplete(found.revision, SHARDS[1])
    finished = store.workspace(found.revision) / SHARDS[0]
    with elsewhere(hub, tmp_path / "models", found) as process:
        until(
            lambda: finished.exists() and growing.exists() and growing.stat().st_size > 8192,
            pause=0.01,
        )
        process.send_signal(signal.SIGKILL)
        process.wait()
    left = growing.stat().st_size
    hub.fail(SHARDS[1], None)
    hub.requests.clear()
    staged = source().stage(found, lambda *_: None)
    size = len(model()[SHARDS[1]])
    assert [(seen.file, seen.range) for seen in hub.requests] == [
        (SHARDS[1], f"bytes={left}-{size - 1}")
    ]
    assert hub.sent(SHARDS[1]) == size - left
    assert Path(staged.path, SHARDS[1]).read_bytes() == model()[SHARDS[1]]


def test_two_processes_download_each_file_once(
    hub: Hub, source: Make, asset: Asset, tmp_path: Path
) -> None:
    found = source().resolve(asset)
    hub.requests.clear()
    hub.fail(SHARDS[1], Fault(pause=0.03))
    seen: list[int] = []
    with elsewhere(hub, tmp_path / "models", found) as process:
        until(lambda: bool(hub.requests_for(SHARDS[1])))
        staged = source().stage(found, lambda done, _: seen.append(done))
        assert process.wait(60) == 0
    assert [hub.sent(name) for name in SHARDS] == [len(model()[name]) for name in SHARDS]
    assert staged.staged
    assert seen[0] < seen[-1] == found.bytes_to_stage, "who waits sees the progress of the other"


def test_flows_in_one_process_download_each_file_once(hub: Hub, source: Make, asset: Asset) -> None:
    found = source().resolve(asset)
    hub.requests.clear()
    hub.fail(SHARDS[0], Fault(pause=0.002))
    staged: list[bool] = []
    flows = [
        Thread(target=lambda: staged.append(source().stage(found, lambda *_: None).staged))
        for _ in range(4)
    ]
    for flow in flows:
        flow.start()
    for flow in flows:
        flow.join()
    assert staged == [True] * 4
    assert [hub.sent(name) for name in SHARDS] == [len(model()[name]) for name in SHARDS]


def test_a_plan_does_not_wait_for_a_download(hub: Hub, source: Make, asset: Asset) -> None:
    found = source().resolve(asset)
    hub.fail(SHARDS[0], Fault(pause=0.05))
    hub.requests.clear()
    download = Thread(target=lambda: source().stage(found, lambda *_: None))
    download.start()
    until(lambda: bool(hub.requests_for(SHARDS[0])))
    hub.fail(SHARDS[0], None)
    again = source().resolve(asset)
    assert download.is_alive()
    assert again == found
    download.join()


def test_progress_is_reported_while_bytes_arrive(
    hub: Hub, source: Make, asset: Asset, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert TICK_SECONDS <= 0.5
    monkeypatch.setattr("moorage.adapters.system.parallel.TICK_SECONDS", 0.02)
    found = source().resolve(asset)
    hub.fail(SHARDS[1], Fault(pause=0.02))
    seen: list[tuple[int, int]] = []
    source().stage(found, lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert len({done for done, _ in seen}) > 5
    assert {total for _, total in seen} == {found.bytes_to_stage}
