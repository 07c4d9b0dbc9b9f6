"""What a failed deploy has fetched is removed where settings say so, and never what others need."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from moorage.adapters.sources.store import Manifest
from moorage.adapters.system.settings import Settings
from moorage.adapters.transfer.store_cleanup import OwnStore
from moorage.common.failures import Cause, Failure
from moorage.inventory.fleet import Fleet, Host
from moorage.inventory.model_store import MANIFEST, folder_name
from moorage.models.source import ResolvedModel
from moorage.operations.stored_models import Need
from moorage.placement.placement import Placed
from moorage.releases.states import ReleaseState
from moorage.spec import ModelSpec
from tasks import stage
from tasks.context import ledger
from tasks.stage import Fetched, before_fetching, fetch
from tests.builders import a_fleet, a_host, a_model, a_placement, a_profile, a_spec

pytestmark = pytest.mark.usefixtures("own_home")

FLEET = Fleet(hosts=(Host(name="gpu-1"),))
HOST = a_host(address="local")
OLD, NEW = "a" * 40, "b" * 40


class Daemon:
    """The images of one daemon, some of which containers use."""

    def __init__(self, *names: str) -> None:
        self.there, self.used = set(names), set[str]()

    def names(self) -> frozenset[str]:
        return frozenset(self.there)

    def remove(self, name: str) -> None:
        if name not in self.used:
            self.there.discard(name)


@pytest.fixture
def daemon(monkeypatch: pytest.MonkeyPatch) -> Daemon:
    daemon = Daemon("postgres:17")
    monkeypatch.setattr(stage, "DockerImages", lambda _address: daemon)
    return daemon


def spec_of(name: str = "tiny") -> ModelSpec:
    return a_spec(
        name=name,
        source="hf://org/tiny",
        engine={"name": "vllm", "runtime": "docker", "image": "docker.io/vllm/vllm-openai:v1"},
    )


def model(revision: str = NEW) -> ResolvedModel:
    return a_model(source="hf://org/tiny", revision=revision)


def stored(home: Path, revision: str, *, complete: bool = True) -> Path:
    """A revision in the store."""
    own = model(revision)
    name = revision if complete else f"{revision}.partial"
    folder = home / "models" / folder_name(own.source) / name
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"x" * 100)
    if complete:
        manifest = Manifest(
            source=own.source, revision=revision, files=(), skipped=(), weights=own.weights
        )
        (folder / MANIFEST).write_text(manifest.model_dump_json())
    return folder


def before() -> Fetched:
    spec = spec_of()
    placed = Placed(spec, model(), a_profile(), a_placement(spec, HOST), a_fleet(HOST), "tiny.v1")
    return before_fetching(placed, FLEET)


@pytest.mark.parametrize("complete", [True, False])
def test_what_was_fetched_is_gone_and_what_was_there_stays(
    tmp_path: Path, daemon: Daemon, complete: bool
) -> None:
    kept = stored(tmp_path, OLD)
    found = before()
    brought = stored(tmp_path, NEW, complete=complete)
    daemon.there |= {"vllm/vllm-openai:v1", "vllm/vllm-openai@sha256:1", "redis:8"}
    for _ in range(2):
        found.remove()
        assert not brought.exists()
        assert kept.exists()
        assert daemon.there == {"postgres:17", "redis:8"}


def test_nothing_happens_where_nothing_was_fetched(tmp_path: Path, daemon: Daemon) -> None:
    there = stored(tmp_path, NEW)
    daemon.there.add("vllm/vllm-openai:v1")
    before().remove()
    assert there.exists()
    assert "vllm/vllm-openai:v1" in daemon.there


def test_what_another_release_needs_stays(tmp_path: Path, daemon: Daemon) -> None:
    found, brought = before(), stored(tmp_path, NEW)
    daemon.there.add("vllm/vllm-openai:v1")
    other = ledger().releases.begin(spec_of("other"), NEW, "")
    found.remove()
    assert brought.exists()
    assert "vllm/vllm-openai:v1" in daemon.there, "it may be about to start it"
    ledger().releases.end(other, ReleaseState.ERROR)
    daemon.used.add("vllm/vllm-openai:v1")
    found.remove()
    assert not brought.exists()
    assert "vllm/vllm-openai:v1" in daemon.there, "a container uses it"


@pytest.mark.parametrize("shared", [True, False])
def test_what_a_release_on_another_host_of_the_store_needs_stays(
    tmp_path: Path, daemon: Daemon, monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    assert daemon
    homes = tmp_path, tmp_path if shared else tmp_path / "elsewhere"
    names = "gpu-1", "gpu-2"
    here, there = (
        OwnStore(name, Settings(home=home), {*names} - {name})
        for name, home in zip(names, homes, strict=True)
    )
    monkeypatch.setattr(stage, "stores_of", lambda *_: (here, there))
    found, brought = before(), stored(tmp_path, NEW)
    need = Need(release="x.v1", folder="org--tiny", revision=NEW, hosts=frozenset({"gpu-2"}))
    monkeypatch.setattr(type(ledger().releases), "needs", lambda _: (need,))
    found.remove()
    assert brought.exists() is shared


@pytest.mark.parametrize("kept", [True, False])
async def test_a_failure_waits_for_what_is_being_fetched_only_where_that_is_removed(
    monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    monkeypatch.setenv("MOORAGE_KEEP_FETCHED", str(kept).lower())
    done = list[str]()

    async def no_image() -> None:
        raise Failure(Cause.IMAGE_PULL_FAILED, "no such tag")

    async def staged() -> ResolvedModel:
        await asyncio.sleep(0.2)
        done.append("staged")
        return a_model()

    with pytest.raises(Failure, match="no such tag"):
        await fetch(no_image(), staged())
    assert done == ([] if kept else ["staged"])
