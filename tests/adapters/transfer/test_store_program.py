"""Looking after a store: what is there, what is damaged, and what goes."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from requests.exceptions import ConnectionError, ReadTimeout

from moorage.adapters.sources.store import Manifest, ModelStore
from moorage.adapters.system.settings import Settings
from moorage.adapters.transfer import bundle, file_checks, store_cleanup
from moorage.adapters.transfer import store_program as keeper
from moorage.adapters.transfer.store_cleanup import (
    OLDER_FIRST,
    OwnStore,
    RemoteStore,
    Store,
    prune,
    stores_of,
)
from moorage.common.failures import Cause, Failure
from moorage.inventory.clusters import RayCluster
from moorage.inventory.fleet import Fleet, Host
from moorage.models.source import ModelFile, WeightSummary
from moorage.operations.stored_models import Need, Stored, StoredState

COMMIT = "a" * 40
FOLDER = "acme--tiny"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    store = ModelStore(tmp_path / "models", "acme/tiny")
    workspace = store.open_workspace(COMMIT)
    (workspace / "a.bin").write_bytes(b"hello")
    manifest = Manifest(
        source="hf://acme/tiny",
        revision=COMMIT,
        files=(ModelFile(name="a.bin", size=5),),
        skipped=(),
        weights=WeightSummary(family="bin", bytes=5),
    )
    store.publish(store.with_checksums(manifest, {}))
    return store.directory(COMMIT)


@pytest.fixture
def store(tmp_path: Path, place: Path) -> OwnStore:
    assert place.is_dir()
    return OwnStore("local", Settings(home=tmp_path))


@pytest.mark.parametrize("workspace", [".partial", ".0123456789ab.partial"])
def test_everything_is_listed_with_its_size(
    tmp_path: Path, store: OwnStore, workspace: str
) -> None:
    begun = tmp_path / "models" / FOLDER / f"{'b' * 40}{workspace}" / ".incomplete"
    begun.mkdir(parents=True)
    (begun / "a.bin").write_bytes(b"123")
    (tmp_path / "models" / FOLDER / "refs.json").write_text("{}")
    whole, partial = store.stored(())
    assert (whole.source, whole.revision, whole.state) == (
        "hf://acme/tiny",
        COMMIT,
        StoredState.COMPLETE,
    )
    assert whole.bytes > 5
    assert (partial.source, partial.bytes, partial.state) == (FOLDER, 3, StoredState.PARTIAL)
    assert partial.revision == "b" * 40


@pytest.mark.parametrize(
    ("host", "used_by"),
    [
        ("local", ("tiny.v1",)),
        ("a-name-that-the-fleet-has-no-more", ("tiny.v1",)),
        ("gpu-1", ()),
        ("ray", ()),
    ],
)
def test_a_release_elsewhere_does_not_use_the_store_of_this_machine(
    tmp_path: Path, place: Path, host: str, used_by: tuple[str, ...]
) -> None:
    far = Host(name="gpu-1", address="ssh://gpu-1", bind="10.0.0.1")
    cluster = RayCluster(dashboard="http://ray:8265", serve="http://ray:8000")
    fleet = Fleet(hosts=(far,), clusters={"ray": cluster})
    own, _ = stores_of(fleet, Settings(home=tmp_path))
    need = Need(release="tiny.v1", folder=FOLDER, revision=place.name, hosts=frozenset({host}))
    (found,) = own.stored((need,))
    assert found.used_by == used_by


def test_what_engines_keep_is_measured_without_following_links(
    tmp_path: Path, store: OwnStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model's own code may write there: links, endless files with holes, and many files."""
    kept = tmp_path / "cache" / "tiny" / "vllm-0.32.0-cuda-abc"
    (kept / "vllm").mkdir(parents=True)
    (kept / "vllm" / "kernel.so").write_bytes(b"x" * 100_000)
    (kept / "models").symlink_to(tmp_path / "models")
    with (kept / "hole").open("wb") as hole:
        hole.truncate(1 << 40)
    (one,) = store.caches()
    assert (one.model, one.folder, one.whole) == ("tiny", "vllm-0.32.0-cuda-abc", True)
    assert 100_000 <= one.bytes < 200_000
    monkeypatch.setattr(keeper, "MOST_FILES", 3)
    (one,) = store.caches()
    assert not one.whole


def test_damage_is_found_and_the_model_counts_as_incomplete_then(
    tmp_path: Path, store: OwnStore, place: Path
) -> None:
    path = f"models/{FOLDER}/{COMMIT}"
    assert store.ask("verify", [path]) == {path: []}
    (place / "a.bin").write_bytes(b"hellO")
    assert store.ask("verify", [path]) == {path: ["a.bin"]}
    own = ModelStore(tmp_path / "models", "acme/tiny")
    assert own.manifest(COMMIT) is None
    workspace = own.open_workspace(COMMIT)
    assert not (workspace / "a.bin").exists()


def test_what_was_touched_and_is_the_same_is_believed_again(tmp_path: Path, place: Path) -> None:
    own = ModelStore(tmp_path / "models", "acme/tiny")
    (place / "a.bin").write_bytes(b"hello")
    before = file_checks.read_json(str(place / file_checks.STAMPS))
    assert own.manifest(COMMIT)
    assert file_checks.read_json(str(place / file_checks.STAMPS)) != before


def test_it_does_the_same_as_a_program(tmp_path: Path, store: OwnStore) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-c",
            bundle(keeper),
            "list",
            str(tmp_path),
            "[]",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == store.ask("list")


def test_what_nobody_needs_is_removed(store: OwnStore, place: Path) -> None:
    (gone,) = prune(store, store.stored(()), lambda: ())
    assert gone.revision == COMMIT
    assert not place.exists()
    assert store.stored(()) == ()


def test_only_what_is_gone_counts_as_removed(store: OwnStore, place: Path) -> None:
    """A killed call had hidden the model, which was downloaded again since."""
    hidden = place.with_name(f"{COMMIT}.going")
    hidden.mkdir()
    (hidden / "a.bin").write_bytes(b"123")
    stays: list[tuple[Stored, str]] = []
    (removed,) = prune(store, store.stored(())[::-1], lambda: (), lambda *one: stays.append(one))
    assert (removed.state, removed.bytes) == (StoredState.GOING, 3)
    assert [(one.state, why) for one, why in stays] == [(StoredState.COMPLETE, OLDER_FIRST)]
    assert not hidden.exists()
    assert (place / "a.bin").exists()
    (removed,) = prune(store, store.stored(()), lambda: ())
    assert (removed.state, place.exists()) == (StoredState.COMPLETE, False)


def test_what_somebody_began_to_need_meanwhile_stays(store: OwnStore, place: Path) -> None:
    need = Need(release="tiny.v2", folder=FOLDER)
    reasons: list[str] = []
    assert prune(store, store.stored(()), lambda: (need,), lambda _, why: reasons.append(why)) == ()
    assert (place / "a.bin").read_bytes() == b"hello"
    assert reasons == ["tiny.v2 needs it by now"]


@pytest.mark.parametrize("refused", ["rename", "rmdir"])
def test_what_cannot_be_removed_stays_for_a_reason(
    store: OwnStore, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    reasons: list[str] = []
    monkeypatch.setattr(os, refused, refuse)
    assert prune(store, store.stored(()), lambda: (), lambda _, why: reasons.append(why)) == ()
    assert reasons == ["Permission denied"]
    assert [one.revision for one in store.stored(())] == [COMMIT]


def test_what_is_being_downloaded_is_used(tmp_path: Path, store: OwnStore) -> None:
    with ModelStore(tmp_path / "models", "acme/tiny").lock(COMMIT, "weights"):
        (one,) = store.stored(())
    assert one.used_by == ("a download",)


@pytest.mark.parametrize(
    "answer", ["", "no JSON", "{}", "[1]", '[{"path": "a"}]', "[" * 100_000, "9" * 5000]
)
def test_nonsense_of_a_host_about_its_store_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    monkeypatch.setattr(store_cleanup, "connection", lambda *_: nullcontext())
    monkeypatch.setattr(store_cleanup, "run_with", lambda *_: f"x\n{answer}\n")
    monkeypatch.setattr(store_cleanup, "ask_daemon", lambda *_: None)
    monkeypatch.setattr(store_cleanup, "helper_image_on", lambda *_: "helper:1")
    host = Host(name="gpu-1", address="ssh://gpu-1", bind="10.0.0.1", store="/srv/models")
    store = RemoteStore(host, Fleet(hosts=(host,)))
    for ask in (lambda: Store.stored(store, ()), store.caches, lambda: store.ask("restore", ["a"])):
        with pytest.raises(Failure, match="its helper answers nonsense") as caught:
            ask()
        assert caught.value.cause is Cause.RUNTIME_UNAVAILABLE


@pytest.mark.parametrize(
    ("state", "used"),
    [
        ("running", True),
        ("paused", True),
        ("restarting", True),
        ("created", True),
        ("exited", False),
        ("dead", False),
    ],
)
def test_a_container_that_runs_or_is_about_to_keeps_its_model(
    monkeypatch: pytest.MonkeyPatch, state: str, used: bool
) -> None:
    """Whoever started it: another ledger's engines are seen by this alone."""
    host = Host(name="gpu-1", address="ssh://gpu-1", bind="10.0.0.1", store="/srv/models")
    path = f"models/{FOLDER}/{COMMIT}"
    mount = {"Source": f"/srv/models/{path}"}
    engine = {"Names": ["/theirs"], "State": state, "Mounts": [mount]}
    store = RemoteStore(host, Fleet(hosts=(host,)))
    monkeypatch.setattr(store, "_seen", [engine], raising=False)
    whole = {"state": StoredState.COMPLETE, "bytes": 1, "used": 0}
    fields = {"host": "gpu-1", "path": path, "source": "hf://acme/tiny", "revision": COMMIT}
    one = Stored.model_validate(fields | whole)
    assert list(store._users(one, ())) == (["container theirs"] if used else [])


@pytest.mark.parametrize("inside", ["", "/part", "/model.gguf"])
def test_a_directory_of_the_store_that_a_release_names_as_its_source_stays(
    tmp_path: Path, store: OwnStore, place: Path, inside: str
) -> None:
    link = tmp_path / "link"
    link.symlink_to(place)
    need = Need(release="x.v1", folder="local--x-0a1b2c3d", path=f"{link}{inside}")
    assert [one.used_by for one in store.stored((need,))] == [("x.v1",)]
    assert prune(store, store.stored(()), lambda: (need,)) == ()
    other = need.model_copy(update={"path": f"{place}-other"})
    assert [one.used_by for one in store.stored((other,))] == [()]


def test_a_directory_of_the_store_whose_files_a_source_links_to_stays(
    tmp_path: Path, store: OwnStore, place: Path
) -> None:
    source = tmp_path / "mine"
    source.mkdir()
    (source / "model.safetensors").symlink_to(place / "a.bin")
    need = Need(release="x.v1", folder="local--mine-0a1b2c3d", path=str(source))
    assert prune(store, store.stored(()), lambda: (need,)) == ()
    assert (source / "model.safetensors").read_bytes() == b"hello"


def test_a_container_on_this_machine_keeps_its_model(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(place)
    mount = {"Source": str(tmp_path / "link")}
    engine = {"Names": ["/theirs"], "State": "running", "Mounts": [mount]}
    daemon = SimpleNamespace(api=SimpleNamespace(containers=lambda **_: [engine]))
    monkeypatch.setattr(store_cleanup, "connect", lambda *_: daemon)
    own, *_ = stores_of(Fleet(), Settings(home=tmp_path))
    assert [one.used_by for one in own.stored(())] == [("container theirs",)]
    assert prune(own, own.stored(()), lambda: ()) == ()


@pytest.mark.parametrize(
    "error", [ConnectionError("no such file"), Failure(Cause.RUNTIME_UNAVAILABLE, "no tunnel")]
)
def test_a_machine_without_docker_has_its_store_all_the_same(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def connect(*_: object) -> None:
        raise error

    monkeypatch.setattr(store_cleanup, "connect", connect)
    own, *_ = stores_of(Fleet(), Settings(home=tmp_path))
    assert [(one.revision, one.used_by) for one in own.stored(())] == [(place.name, ())]


def test_a_silent_docker_of_this_machine_may_have_users(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(*_: object) -> None:
        raise ReadTimeout("read timed out")

    assert place.is_dir()
    monkeypatch.setattr(store_cleanup, "connect", connect)
    own, *_ = stores_of(Fleet(), Settings(home=tmp_path))
    with pytest.raises(Failure, match="timed out"):
        own.stored(())
