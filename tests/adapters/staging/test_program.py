"""The program that brings a model onto a host: whole, verified, or not there."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from moorage.adapters.staging import program
from tests.hub.faults import Fault
from tests.hub.server import Hub

REPO, WEIGHTS = "acme/tiny", "model.safetensors"
FILES = {"config.json": b"{}", WEIGHTS: os.urandom(300_000), "more/a.bin": os.urandom(50_000)}


@dataclass
class Store:
    folder: Path
    hub: Hub

    @property
    def place(self) -> Path:
        return self.folder / "acme--tiny" / self.hub.branches[REPO]["main"]

    def bring(self, **changes: Any) -> list[dict[str, Any]]:
        """Run the program; gives all that it said."""
        done = subprocess.run(
            [sys.executable, "-I", program.__file__],
            input=self.job(**changes),
            capture_output=True,
            text=True,
            check=True,
        )
        return [json.loads(line) for line in done.stdout.splitlines()]

    def job(self, **changes: Any) -> str:
        commit = self.place.name
        files = [
            {
                "name": name,
                "size": len(data),
                "sha256": hashlib.sha256(data).hexdigest(),
                "url": f"{self.hub.url}/{REPO}/resolve/{commit}/{name}",
            }
            for name, data in FILES.items()
        ]
        told = {"store": str(self.folder), "shelf": "acme--tiny", "commit": commit}
        job = {**told, "files": files, "manifest": '{"rules": 1}', "seconds": 60, **changes}
        return json.dumps(job) + "\n"

    def content(self) -> dict[str, bytes]:
        return {name: (self.place / name).read_bytes() for name in FILES}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Hub({REPO: FILES}) as hub:
        yield Store(tmp_path, hub)


def test_a_model_is_brought_once(store: Store) -> None:
    said = store.bring()
    assert said[-1] == {"result": "staged"}
    assert store.content() == FILES
    assert (store.place / ".moorage.json").read_text() == '{"rules": 1}'
    assert not Path(f"{store.place}.partial").exists()
    before = len(store.hub.requests)
    assert store.bring() == [{"result": "present"}]
    assert len(store.hub.requests) == before


def test_what_was_cut_goes_on_where_it_ended(store: Store) -> None:
    store.hub.fail(WEIGHTS, Fault(cut_after=100_000, times=2))
    assert store.bring()[-1] == {"result": "staged"}
    assert store.content() == FILES
    assert store.hub.sent(WEIGHTS) == 300_000


def test_a_server_that_ignores_ranges_does_not_spoil_the_file(store: Store) -> None:
    store.hub.fail(WEIGHTS, Fault(cut_after=100_000, ignore_range=True, times=1))
    growing = Path(f"{store.place}.partial") / ".incomplete"
    growing.mkdir(parents=True)
    (growing / WEIGHTS).write_bytes(FILES[WEIGHTS][:70_000])
    store.hub.fail(WEIGHTS, Fault(ignore_range=True))
    assert store.bring()[-1] == {"result": "staged"}
    assert store.content() == FILES


def test_a_killed_run_costs_only_the_rest(store: Store) -> None:
    store.hub.fail(WEIGHTS, Fault(pause=0.02))
    growing = Path(f"{store.place}.partial/.incomplete") / WEIGHTS
    running = subprocess.Popen(
        [sys.executable, "-I", program.__file__], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    assert running.stdin
    running.stdin.write(store.job().encode())
    running.stdin.close()
    until = time.monotonic() + 30
    while not (growing.exists() and growing.stat().st_size > 50_000):
        assert time.monotonic() < until
        time.sleep(0.01)
    running.kill()
    running.wait()
    had = growing.stat().st_size
    store.hub.fail(WEIGHTS, None)
    assert store.bring()[-1] == {"result": "staged"}
    assert store.content() == FILES
    last = store.hub.asked_for(WEIGHTS)[-1]
    assert last.sent == len(FILES[WEIGHTS]) - had


def test_what_is_not_what_was_announced_gets_no_place(store: Store) -> None:
    store.hub.fail(WEIGHTS, Fault(content=os.urandom(300_000)))
    said = store.bring()[-1]
    assert said["cause"] == "download-corrupt"
    assert WEIGHTS in said["detail"]
    assert not store.place.exists()


@pytest.mark.parametrize(
    ("refusal", "cause"),
    [("unauthorized", "source-unauthorized"), ("no file", "source-missing")],
)
def test_a_refusal_is_not_tried_again(store: Store, refusal: str, cause: str) -> None:
    store.hub.fail(WEIGHTS, Fault(refusal=refusal))
    assert store.bring()[-1]["cause"] == cause
    assert len(store.hub.asked_for(WEIGHTS)) == 1


def test_without_room_nothing_is_fetched(store: Store) -> None:
    huge = {"name": "huge.bin", "size": 1 << 60, "url": f"{store.hub.url}/huge"}
    said = store.bring(files=[huge])
    assert said[-1]["cause"] == "disk-full"
    assert store.hub.requests == []


def test_damage_on_the_disk_is_found_when_asked_and_mended(store: Store) -> None:
    store.bring()
    damaged = bytearray(FILES[WEIGHTS])
    damaged[1000] ^= 1
    (store.place / WEIGHTS).write_bytes(damaged)
    assert store.bring()[-1] == {"result": "present"}
    assert store.bring(check=True)[-1] == {"result": "staged"}
    assert store.content() == FILES
    assert len(store.hub.asked_for("config.json")) == 1


def test_the_token_goes_to_the_hub_alone(tmp_path: Path) -> None:
    with Hub({REPO: FILES}, token="hf_secret", cdn=True) as hub:
        store = Store(tmp_path, hub)
        assert store.bring()[-1]["cause"] == "source-unauthorized"
        assert store.bring(headers={"Authorization": "Bearer hf_secret"})[-1]["result"] == "staged"
        assert store.content() == FILES
        assert hub.requests


def test_it_ends_in_time(store: Store) -> None:
    store.hub.fail(WEIGHTS, Fault(pause=1.0))
    assert store.bring(seconds=1)[-1]["cause"] == "download-timeout"
    assert Path(f"{store.place}.partial/.incomplete/{WEIGHTS}").stat().st_size > 0
