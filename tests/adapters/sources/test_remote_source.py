"""Resolving and staging: what a model is, where it ends up, and which requests that takes."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from moorage.adapters.sources import Keys, source_for
from moorage.adapters.sources.hub_client import HubClient
from moorage.adapters.sources.remote_source import RemoteSource
from moorage.adapters.sources.store import Manifest, ModelStore
from moorage.adapters.system.settings import Settings
from moorage.common.failures import Cause, Failure
from moorage.models.assets import Asset
from moorage.models.source import ResolvedModel
from tests.adapters.sources.conftest import REPO
from tests.hub.faults import API, Fault
from tests.hub.server import Hub
from tests.hub.tiny import WEIGHT_BYTES, model, pattern, safetensors

Make = Callable[..., RemoteSource]
SHARDS = ("model-1-of-2.safetensors", "model-2-of-2.safetensors")
CHOSEN = {"config.json", "tokenizer_config.json", "model.safetensors.index.json", *SHARDS}


def quiet(done: int, total: int) -> None:
    assert 0 <= done <= total


def at(asset: Asset, revision: str) -> Asset:
    return asset.model_copy(update={"revision": revision})


def on_disk(directory: str | Path) -> dict[str, bytes]:
    paths = (path for path in Path(directory).rglob("*") if not path.name.startswith("."))
    return {path.name: path.read_bytes() for path in paths if path.is_file()}


def test_a_resolved_model_is_pinned_and_described_without_its_weights(
    hub: Hub, source: Make, asset: Asset
) -> None:
    found = source().resolve(asset)
    assert found.revision == hub.branches[REPO]["main"]
    assert (found.source, found.asked_revision, found.staged) == (f"hf://{REPO}", "", False)
    assert {file.name for file in found.files} == CHOSEN
    assert {file.name for file in found.skipped} == {"pytorch_model.bin", ".gitattributes"}
    assert found.config["hidden_size"] == 64
    assert (found.has_chat_template, found.is_sentence_encoder) == (True, False)
    assert (found.weights.bytes, found.weights.tensors) == (WEIGHT_BYTES, 3)
    assert found.weights.bytes_by_dtype == {"BF16": WEIGHT_BYTES - 256, "F32": 256}
    assert not Path(found.path).exists()


def test_a_complete_model_needs_no_store_that_can_be_written(
    source: Make, asset: Asset, monkeypatch: pytest.MonkeyPatch
) -> None:
    source().stage(source().resolve(asset), quiet)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    for name in ("pathlib.Path.mkdir", "os.utime", "os.replace", "os.rename"):
        monkeypatch.setattr(name, refuse)
    monkeypatch.setattr("moorage.adapters.sources.store.file_lock", refuse)
    found = source().resolve(at(asset, "")).model_copy(update={"asked_revision": "another-name"})
    assert found.staged
    assert source().stage(found, quiet).staged


def test_a_store_that_cannot_be_written_is_named(
    source: Make, asset: Asset, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    with pytest.raises(Failure) as caught:
        source().resolve(asset)
    assert caught.value.cause is Cause.STORE_UNWRITABLE


def test_only_the_headers_of_large_weights_are_read(hub: Hub, source: Make, asset: Asset) -> None:
    hub.push(REPO, model(**{SHARDS[0]: safetensors({"embed": ("F32", [1000, 1000])})}))
    assert source().resolve(asset).weights.bytes > 4_000_000
    assert hub.sent(SHARDS[0]) == 65_536


def test_a_header_longer_than_the_first_look_is_read_to_its_end(
    hub: Hub, source: Make, asset: Asset
) -> None:
    many = {f"layers.{number}.weight": ("BF16", [2, 2]) for number in range(2000)}
    hub.push(REPO, model(**{SHARDS[0]: safetensors(many)}))
    assert source().resolve(asset).weights.tensors == 2002
    assert [seen.status for seen in hub.requests_for(SHARDS[0])] == [206, 206]


def test_weights_without_headers_count_by_their_size(hub: Hub, source: Make, asset: Asset) -> None:
    hub.push(REPO, {"config.json": b"{}", "pytorch_model.bin": pattern(777)})
    weights = source().resolve(asset).weights
    assert (weights.family, weights.bytes, weights.tensors) == ("bin", 777, 0)


def test_a_sentence_encoder_is_known_by_its_pooling(hub: Hub, source: Make, asset: Asset) -> None:
    modules = [{"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}]
    hub.push(REPO, model(**{"modules.json": json.dumps(modules).encode()}))
    assert source().resolve(asset).is_sentence_encoder


def test_a_shard_that_the_repository_lacks_is_named(hub: Hub, source: Make, asset: Asset) -> None:
    files = model()
    del files[SHARDS[1]]
    hub.push(REPO, files)
    with pytest.raises(Failure, match=SHARDS[1]) as caught:
        source().resolve(asset)
    assert caught.value.cause is Cause.SOURCE_INCOMPLETE


def test_staging_puts_real_verified_files_in_place(hub: Hub, source: Make, asset: Asset) -> None:
    seen: list[tuple[int, int]] = []
    found = source().resolve(asset)
    staged = source().stage(found, lambda done, total: seen.append((done, total)))
    assert staged == found.model_copy(update={"staged": True})
    assert on_disk(staged.path) == {name: model()[name] for name in CHOSEN}
    assert not any(path.is_symlink() for path in Path(staged.path).rglob("*"))
    assert seen[-1] == (found.bytes_to_stage, found.bytes_to_stage)
    assert not list(Path(staged.path).parent.glob("*.partial"))
    assert not hub.requests_for("pytorch_model.bin")


def test_a_staged_model_is_not_asked_for_again(hub: Hub, source: Make, asset: Asset) -> None:
    staged = source().stage(source().resolve(asset), quiet)
    hub.requests.clear()
    again = source().resolve(asset)
    assert again == staged
    assert source().stage(again, quiet) == staged
    assert [seen.file for seen in hub.requests] == [API]


def test_headers_come_from_the_hub_and_later_from_the_store(source: Make, asset: Asset) -> None:
    first = source().resolve(asset)
    assert first.headers["head"].shape == (700, 64)
    source().stage(first, quiet)
    stored = source().resolve(asset)
    assert stored.staged
    assert stored.headers == first.headers


def test_a_stored_commit_that_is_named_in_full_needs_no_hub(
    hub: Hub, source: Make, asset: Asset
) -> None:
    staged = source().stage(source().resolve(asset), quiet)
    hub.close()
    assert source().resolve(at(asset, staged.revision)).staged


def test_a_branch_that_moves_does_not_move_what_was_resolved(
    hub: Hub, source: Make, asset: Asset
) -> None:
    before = source().resolve(asset)
    hub.push(REPO, model(**{"added.txt": b"new"}))
    after = source().resolve(asset)
    assert after.revision == hub.branches[REPO]["main"] != before.revision
    assert "added.txt" not in on_disk(source().stage(before, quiet).path)
    assert "added.txt" in on_disk(source().stage(after, quiet).path)


@pytest.mark.parametrize("name", [SHARDS[0], "tokenizer_config.json"])
def test_a_corrupted_file_is_thrown_away_and_only_that_one_is_fetched_again(
    hub: Hub, source: Make, asset: Asset, name: str
) -> None:
    good = model()[name]
    found = source().resolve(asset)
    shutil.rmtree(Path(f"{found.path}.partial"))
    hub.fail(name, Fault(content=good[:-1] + b"\0"))
    with pytest.raises(Failure, match=f"{name} has checksum") as caught:
        source().stage(found, quiet)
    assert (caught.value.cause, caught.value.cause.retryable) == (Cause.DOWNLOAD_CORRUPT, True)
    hub.fail(name, None)
    hub.requests.clear()
    assert on_disk(source().stage(found, quiet).path)[name] == good
    assert hub.sent(name) == len(good)


def test_a_truncated_file_is_corrupt(hub: Hub, source: Make, asset: Asset) -> None:
    found = source().resolve(asset)
    hub.fail(SHARDS[1], Fault(content=model()[SHARDS[1]][:-100]))
    with pytest.raises(Failure, match=f"{SHARDS[1]} has 89,912 bytes") as caught:
        source().stage(found, quiet)
    assert caught.value.cause is Cause.DOWNLOAD_CORRUPT
    assert not Path(found.path).exists()


def test_what_a_stored_model_lost_is_fetched_again_and_nothing_else(
    hub: Hub, source: Make, asset: Asset
) -> None:
    staged = source().stage(source().resolve(asset), quiet)
    Path(staged.path, SHARDS[0]).unlink()
    found = source().resolve(asset)
    assert not found.staged
    hub.requests.clear()
    assert set(on_disk(source().stage(found, quiet).path)) == CHOSEN
    assert [seen.file for seen in hub.requests] == [SHARDS[0]]


def test_the_disk_is_looked_at_before_the_download(
    hub: Hub, source: Make, asset: Asset, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = source().resolve(asset)
    hub.requests.clear()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=150_000))
    with pytest.raises(
        Failure, match=r"146\.5 KiB are free at .*, 158\.0 KiB are needed"
    ) as caught:
        source().stage(found, quiet)
    assert caught.value.cause is Cause.DISK_FULL
    assert hub.requests == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_fills_up_meanwhile(
    source: Make, asset: Asset, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def full(*_: object) -> None:
        raise OSError(number, "the disk is full")

    found = source().resolve(asset)
    monkeypatch.setattr(HubClient, "fetch", full)
    with pytest.raises(Failure, match="the disk is full") as caught:
        source().stage(found, quiet)
    assert caught.value.cause is Cause.DISK_FULL


def test_a_download_beyond_its_deadline_ends_and_keeps_what_it_has(
    hub: Hub, source: Make, asset: Asset
) -> None:
    found = source().resolve(asset)
    hub.fail(SHARDS[1], Fault(pause=0.05))
    with pytest.raises(Failure, match=r"downloading org/tiny took over 0\.10 s") as caught:
        source().stage(found, quiet, deadline_seconds=0.1)
    assert caught.value.cause is Cause.DOWNLOAD_TIMEOUT
    hub.fail(SHARDS[1], None)
    hub.requests.clear()
    source().stage(found, quiet)
    assert hub.sent(SHARDS[1]) < len(model()[SHARDS[1]])


def staged(source: RemoteSource, asset: Asset) -> ResolvedModel:
    return source.stage(source.resolve(asset), quiet)


def test_while_all_weights_are_read_others_learn_what_the_model_is(
    source: Make, asset: Asset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That takes many minutes where the source announces no checksum that lasts."""
    found, add, read = source().resolve(asset), ModelStore.with_checksums, list[str]()

    def slowly(self: ModelStore, manifest: Manifest, known: dict[str, str]) -> Manifest:
        read.append(source().resolve(asset).revision)
        return add(self, manifest, known)

    monkeypatch.setattr("moorage.adapters.sources.remote_source.METADATA_SECONDS", 0.2)
    monkeypatch.setattr(ModelStore, "with_checksums", slowly)
    source().stage(found, quiet)
    assert read == [found.revision]


def test_offline_serves_what_is_stored(hub: Hub, source: Make, asset: Asset) -> None:
    stored = staged(source(), asset)
    hub.close()
    offline = source(offline=True)
    for revision in (None, "main", stored.revision):
        found = offline.resolve(asset.model_copy(update={"revision": revision}))
        assert (found.revision, found.staged) == (stored.revision, True)
        assert offline.stage(found, quiet).path == stored.path


@pytest.mark.parametrize("revision", ["v2", "0" * 40])
def test_offline_says_what_is_stored_instead(
    hub: Hub, source: Make, asset: Asset, revision: str
) -> None:
    staged(source(), asset)
    hub.requests.clear()
    with pytest.raises(Failure, match=f"'{revision}'; stored here: main") as caught:
        source(offline=True).resolve(at(asset, revision))
    assert caught.value.cause is Cause.SOURCE_OFFLINE
    assert hub.requests == []


def test_offline_nothing_is_downloaded(hub: Hub, source: Make, asset: Asset) -> None:
    found = source().resolve(asset)
    hub.requests.clear()
    offline = source(offline=True)
    with pytest.raises(Failure, match="stored here: nothing") as caught:
        offline.resolve(asset)
    assert caught.value.cause is Cause.SOURCE_OFFLINE
    with pytest.raises(Failure, match="stored here: nothing") as caught:
        offline.stage(found, quiet)
    assert caught.value.cause is Cause.SOURCE_OFFLINE
    assert hub.requests == []


def test_a_hub_that_is_away_leaves_a_way_on(hub: Hub, source: Make, asset: Asset) -> None:
    stored = staged(source(), asset)
    hub.close()
    with pytest.raises(Failure) as caught:
        source().resolve(asset)
    assert caught.value.cause is Cause.HUB_UNAVAILABLE
    assert f"commit {stored.revision}: with HF_HUB_OFFLINE=1" in caught.value.suggestion


def test_the_settings_and_the_token_reach_the_source(
    hub: Hub, asset: Asset, tmp_path: Path
) -> None:
    hub.token = "hf_token"
    settings = Settings(
        home=tmp_path, hub_endpoint=f"{hub.url}/", hub_offline=False, download_workers=2
    )
    source = source_for(asset, settings, Keys(hub="hf_token"))
    found = source.stage(source.resolve(asset), quiet)
    assert found.path == str(tmp_path / "models" / "org--tiny" / found.revision)
