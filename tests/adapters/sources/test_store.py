"""The store: nothing half-done looks finished, and nothing finished is lost."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from moorage.adapters.sources.store import Manifest, ModelStore, verify
from moorage.common.failures import Cause, Failure
from moorage.models.source import ModelFile, SkippedFile, WeightSummary

COMMIT = "c" * 40
DATA = b"some weights"
SHA256 = hashlib.sha256(DATA).hexdigest()
GIT_OID = hashlib.sha1(b"blob 12\0" + DATA).hexdigest()
FILE = ModelFile(name="folder/model.safetensors", size=len(DATA), sha256=SHA256)
CONFIG = ModelFile(name="config.json", size=2)
MANIFEST = Manifest(
    source="hf://org/tiny",
    revision=COMMIT,
    files=(CONFIG, FILE),
    skipped=(SkippedFile(name="a.bin", size=3, reason="because"),),
    weights=WeightSummary(family="safetensors", bytes=12),
)


def download(store: ModelStore, file: ModelFile, content: bytes) -> Path:
    path = store.incomplete(COMMIT, file.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def fill(store: ModelStore) -> None:
    store.open_workspace(COMMIT)
    for file, content in ((CONFIG, b"{}"), (FILE, DATA)):
        download(store, file, content)
        store.accept(COMMIT, file)


@pytest.mark.parametrize("write", ["lock", "open_workspace", "publish"])
def test_a_store_that_cannot_be_written_is_a_failure(
    store: ModelStore, monkeypatch: pytest.MonkeyPatch, write: str
) -> None:
    fill(store)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    monkeypatch.setattr("moorage.adapters.sources.store.publish", refuse)
    writes: dict[str, Callable[[], object]] = {
        "lock": lambda: store.lock(COMMIT, "weights"),
        "open_workspace": lambda: store.open_workspace(COMMIT),
        "publish": lambda: store.publish(MANIFEST),
    }
    with pytest.raises(Failure) as caught:
        writes[write]()
    assert caught.value.cause is Cause.STORE_UNWRITABLE


def test_a_complete_commit_tells_what_it_holds(store: ModelStore) -> None:
    fill(store)
    assert store.manifest(COMMIT) is None
    store.publish(MANIFEST)
    assert store.manifest(COMMIT) == MANIFEST
    assert (store.directory(COMMIT) / FILE.name).read_bytes() == DATA
    assert not store.workspace(COMMIT).exists()


@pytest.mark.parametrize("announced", [{"sha256": SHA256}, {"git_oid": GIT_OID}, {}])
def test_each_kind_of_checksum_is_known(tmp_path: Path, announced: dict[str, str]) -> None:
    path = tmp_path / "file"
    file = ModelFile(name="file", size=len(DATA), **announced)
    path.write_bytes(DATA)
    verify(path, file)
    path.write_bytes(DATA[:-1] + b"!")
    if announced:
        with pytest.raises(Failure, match="file has checksum"):
            verify(path, file)


def test_the_manifest_is_on_the_disk_before_the_directory_has_its_name(
    store: ModelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync, synced = os.fsync, list[Path]()

    def record(descriptor: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", record)
    fill(store)
    store.publish(MANIFEST)
    assert store.workspace(COMMIT) / ".moorage.json" in synced


def test_nothing_is_published_while_a_file_is_missing(store: ModelStore) -> None:
    store.open_workspace(COMMIT)
    with pytest.raises(Failure, match=r"config.json, folder/model.safetensors vanished"):
        store.publish(MANIFEST)
    assert not store.directory(COMMIT).exists()


@pytest.mark.parametrize(
    "damage", ["lost", "shortened", "no manifest", "damaged manifest", "rules"]
)
def test_a_damaged_commit_is_worked_on_again_with_what_is_left(
    store: ModelStore, damage: str
) -> None:
    fill(store)
    store.publish(MANIFEST)
    directory = store.directory(COMMIT)
    manifest = directory / ".moorage.json"
    match damage:
        case "lost":
            (directory / FILE.name).unlink()
        case "shortened":
            (directory / FILE.name).write_bytes(DATA[:-1])
        case "no manifest":
            manifest.unlink()
        case "damaged manifest":
            manifest.write_text("{")
        case "rules":
            manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "rules": 0}))
    assert store.manifest(COMMIT) is None
    assert store.open_workspace(COMMIT) == store.workspace(COMMIT)
    assert store.missing(COMMIT, [CONFIG]) == ()
    assert not directory.exists()
    download(store, FILE, DATA)
    store.accept(COMMIT, FILE)
    store.publish(MANIFEST)
    assert store.manifest(COMMIT) == MANIFEST


def test_bytes_are_counted_wherever_they_are(store: ModelStore) -> None:
    files = (CONFIG, FILE)
    assert store.bytes_present(COMMIT, files) == 0
    download(store, FILE, DATA[:5])
    assert store.bytes_present(COMMIT, files) == 5
    fill(store)
    assert store.bytes_present(COMMIT, files) == 14
    store.publish(MANIFEST)
    assert store.bytes_present(COMMIT, files) == 14


def test_refs_are_kept_by_branch(tmp_path: Path) -> None:
    store = ModelStore(tmp_path.parent, tmp_path.name)
    store.remember("", "a" * 40)
    store.remember("v1", "b" * 40)
    store.remember("c" * 40, "c" * 40)
    assert store.refs() == {"main": "a" * 40, "v1": "b" * 40}
    assert [store.commit_of(name) for name in ("", "main", "v1", "v2")] == [
        *["a" * 40] * 2,
        "b" * 40,
        None,
    ]
    assert store.commit_of("d" * 40) == "d" * 40


@pytest.mark.parametrize("content", ["", "{", "[]", '{"main": "../../etc"}', '{"main": 5}'])
def test_damaged_refs_tell_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / "refs.json").write_text(content)
    store = ModelStore(tmp_path.parent, tmp_path.name)
    assert store.commit_of("main") is None
    store.remember("main", COMMIT)
    assert store.commit_of("main") == COMMIT
