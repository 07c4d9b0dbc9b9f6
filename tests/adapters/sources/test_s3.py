"""Models in buckets: pinned, read in parts, downloaded once, verified."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

from moorage.adapters.sources import (
    Keys,
    mirrors_of,
    read_keys,
    resolve_all,
    s3_client,
    source_for,
)
from moorage.adapters.sources.remote_source import RemoteSource
from moorage.adapters.sources.s3_client import S3Client, announced_file
from moorage.adapters.sources.store import Manifest, ModelStore
from moorage.adapters.system.settings import Settings
from moorage.adapters.transfer.bring_model import job_of
from moorage.adapters.transfer.host_store import PROGRAM
from moorage.common.failures import Cause, Failure
from moorage.common.units import MIB
from moorage.models.assets import Asset, assets_of
from moorage.models.source import ModelFile, ResolvedModel
from moorage.operations.history.rollback import pinned_spec
from moorage.spec import ModelSpec
from tests.builders import a_release
from tests.hostile_engine import MISBEHAVIOURS, REFUSED, HostileEngine
from tests.hub.tiny import WEIGHT_BYTES, model

if TYPE_CHECKING:
    from tests.bucket import Bucket

pytest.importorskip("moto", reason="moto stands for S3 in these tests")
pytest.importorskip("boto3")
ClientError = pytest.importorskip("botocore.exceptions").ClientError

KEYS = Keys(s3=("an-id", "a-secret-key", ""))
SPEC = ModelSpec(name="tiny", source="s3://models/team/tiny")
ASSET = assets_of(SPEC)[0]
WEIGHTS = "model-1-of-2.safetensors"
HANG_SECONDS = 10


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    from tests.bucket import Bucket  # noqa: PLC0415  (needs moto)

    with Bucket() as bucket:
        bucket.put("team/tiny", model())
        bucket.put("team", {"other.txt": b"not below the prefix"})
        yield bucket


@pytest.fixture
def settings(bucket: Bucket, tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, s3_endpoint=bucket.url)


def resolve(settings: Settings, asset: Asset = ASSET, keys: Keys = KEYS) -> ResolvedModel:
    return source_for(asset, settings, keys).resolve(asset)


def stage(settings: Settings, found: ResolvedModel) -> ResolvedModel:
    return source_for(ASSET, settings, KEYS).stage(found, lambda *_: None)


def test_a_model_is_known_before_its_weights_are_downloaded(
    bucket: Bucket, settings: Settings
) -> None:
    found = resolve(settings)
    assert found.weights.bytes == WEIGHT_BYTES
    assert {file.name for file in found.files} <= set(model())
    assert len(found.revision) == 64
    assert not found.staged
    (request,) = bucket.got(WEIGHTS)
    assert request.range.startswith("bytes=0-")


def test_it_is_downloaded_once_and_found_again(bucket: Bucket, settings: Settings) -> None:
    staged = stage(settings, resolve(settings))
    content = {file.name: Path(staged.path, file.name).read_bytes() for file in staged.files}
    assert content == {name: model()[name] for name in content}
    requests = len(bucket.got(WEIGHTS))
    again = resolve(settings)
    assert again.staged
    stage(settings, again)
    assert len(bucket.got(WEIGHTS)) == requests


def test_checksums_are_recorded_where_the_store_announces_others(settings: Settings) -> None:
    staged = stage(settings, resolve(settings))
    manifest = Manifest.model_validate_json(Path(staged.path, ".moorage.json").read_bytes())
    sums = {file.name: file.sha256 for file in manifest.files}
    assert sums == {name: hashlib.sha256(model()[name]).hexdigest() for name in sums}


def test_a_file_that_changes_makes_another_revision(bucket: Bucket, settings: Settings) -> None:
    before = resolve(settings)
    assert resolve(settings).revision == before.revision
    bucket.put("team/tiny", {"notes.json": b"{}"})
    after = resolve(settings)
    assert after.revision != before.revision
    with pytest.raises(Failure) as caught:
        resolve(settings, ASSET.model_copy(update={"revision": before.revision}))
    assert caught.value.cause is Cause.SOURCE_MISSING
    assert after.revision in caught.value.detail


def test_what_ran_comes_from_the_store_when_the_bucket_has_changed(
    bucket: Bucket, settings: Settings
) -> None:
    before = stage(settings, resolve(settings))
    bucket.put("team/tiny", {"notes.json": b"{}"})
    pinned = pinned_spec(a_release(spec=SPEC, revision=before.revision))
    again = resolve_all(pinned, settings, KEYS)
    assert (again.revision, again.path, again.staged) == (before.revision, before.path, True)


def test_a_file_that_is_replaced_before_it_is_downloaded_is_refused(
    bucket: Bucket, settings: Settings
) -> None:
    found = resolve(settings)
    other = bytearray(model()[WEIGHTS])
    other[-1] ^= 1
    bucket.put("team/tiny", {WEIGHTS: bytes(other)})
    with pytest.raises(Failure) as caught:
        stage(settings, found)
    assert caught.value.cause in (Cause.SOURCE_INCOMPLETE, Cause.SOURCE_MISSING)


def test_a_file_that_was_sent_in_parts_is_verified(bucket: Bucket, tmp_path: Path) -> None:
    whole = os.urandom(12_000_000)
    bucket.put("big", {WEIGHTS: whole})
    client = S3Client("models/big", bucket.url, KEYS.s3, waits=())
    commit, files = client.list_files("")
    file = next(one for one in files if one.name == WEIGHTS)
    assert file.md5.endswith("-3")
    target = tmp_path / WEIGHTS
    target.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(Failure) as caught:
        client.fetch(commit, file, target, Event())
    assert caught.value.cause is Cause.DOWNLOAD_CORRUPT
    client.fetch(commit, file, target, Event())
    assert target.read_bytes() == whole


ETAG = "5d41402abc4b2a76b9719d911017c592"
SHA = hashlib.sha256(b"hello").digest()


@pytest.mark.parametrize(
    ("etag", "head", "checksum"),
    [
        (ETAG, {}, ETAG),
        (ETAG, {"ServerSideEncryption": "AES256"}, ETAG),
        (ETAG, {"ServerSideEncryption": "aws:kms"}, ""),
        (ETAG, {"SSECustomerAlgorithm": "AES256"}, ""),
        (ETAG, {"ChecksumSHA256": base64.b64encode(SHA).decode()}, SHA.hex()),
        (f"{ETAG}-2", {"part": 3}, f"{ETAG}-2"),
        (
            f"{ETAG}-2",
            {"part": 4, "ChecksumType": "COMPOSITE", "ChecksumSHA256": "AA=="},
            f"{ETAG}-2",
        ),
        (f"{ETAG}-3", {"part": 4}, ""),
        ("something-else", {}, ""),
    ],
)
def test_what_a_store_tells_of_a_file_is_what_it_is_checked_against(
    etag: str, head: dict[str, object], checksum: str
) -> None:
    assert announced_file("a", 5, etag, {"ETag": f'"{etag}"', **head}).checksum == checksum


def test_a_public_bucket_is_asked_without_keys(
    bucket: Bucket, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    bucket.s3.put_bucket_acl(Bucket=bucket.name, ACL="public-read")
    bucket.put("team/tiny", model(), ACL="public-read")
    before = len(bucket.requests)
    found = resolve(settings, keys=Keys())
    assert {one.signed for one in bucket.requests[before:]} == {""}
    (mirror,) = mirrors_of(found, settings, Keys(), 60)
    assert "Signature" not in str(mirror)


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        (403, Cause.SOURCE_UNAUTHORIZED),
        (404, Cause.SOURCE_MISSING),
        (503, Cause.HUB_RATE_LIMITED),
        (500, Cause.HUB_UNAVAILABLE),
    ],
)
def test_refusals_have_causes_and_tell_no_keys(
    bucket: Bucket, tmp_path: Path, status: int, cause: Cause
) -> None:
    bucket.refused = status
    client = S3Client("models/team/tiny", bucket.url, KEYS.s3, attempts=1, waits=())
    with pytest.raises(Failure) as caught:
        RemoteSource(client, ModelStore(tmp_path, "s3")).resolve(ASSET)
    assert caught.value.cause is cause
    assert "s3://models/team/tiny" in caught.value.detail
    assert "a-secret-key" not in f"{caught.value.detail}{caught.value.suggestion}"


def listing_of(client: S3Client) -> None:
    client.list_files("")


def start_of_file(client: S3Client) -> None:
    client.read("", ModelFile(name="a", size=1 << 40, etag=ETAG), Event(), 0, 9)


@pytest.mark.parametrize(
    ("ask", "misbehaviour"),
    [
        (listing_of, "drips its body"),
        (listing_of, "drips its headers"),
        (listing_of, "drips its status"),
        (listing_of, "drips its refusal"),
        (listing_of, "drips chunks"),
        (listing_of, "says continue for ever"),
        (listing_of, "sends for ever"),
        (listing_of, "sends chunks for ever"),
        (listing_of, "promises 10 GB"),
        (listing_of, "refuses for ever"),
        (start_of_file, "drips its headers"),
        (start_of_file, "drips its refusal"),
        (start_of_file, "says continue for ever"),
        (start_of_file, "refuses for ever"),
    ],
)
def test_what_is_no_file_has_one_deadline_and_one_limit(
    monkeypatch: pytest.MonkeyPatch, ask: Callable[[S3Client], None], misbehaviour: str
) -> None:
    refusing = lambda: chain([REFUSED + b"\r\n"], repeat(bytes(MIB)))  # noqa: E731
    monkeypatch.setitem(MISBEHAVIOURS, "refuses for ever", refusing)
    monkeypatch.setattr(s3_client, "LISTING_SECONDS", 0.5)
    monkeypatch.setattr(s3_client, "ANSWER_SECONDS", 0.5)
    tracemalloc.start()
    with HostileEngine(misbehaviour) as store:
        client = S3Client("models", store.url, KEYS.s3, attempts=1, waits=())
        began = time.monotonic()
        with pytest.raises(Failure):
            ask(client)
        assert time.monotonic() - began < HANG_SECONDS
        assert tracemalloc.get_traced_memory()[1] < 100 * MIB
    tracemalloc.stop()


def test_the_metadata_of_all_files_is_read_within_one_deadline(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_client, "LISTING_SECONDS", 0.5)
    client = S3Client("models/team/tiny", bucket.url, KEYS.s3, attempts=1, waits=())
    listed, asked = client._list(), len(bucket.requests)

    def list_slowly() -> list[tuple[str, int, str]]:
        time.sleep(0.6)
        return listed

    monkeypatch.setattr(client, "_list", list_slowly)
    with pytest.raises(Failure) as caught:
        client.list_files("")
    assert caught.value.cause is Cause.HUB_UNAVAILABLE
    assert len(bucket.requests) - asked <= s3_client.HEADS


def test_nothing_below_the_prefix_is_told(settings: Settings) -> None:
    with pytest.raises(Failure) as caught:
        resolve(settings, ASSET.model_copy(update={"source": "s3://models/elsewhere"}))
    assert caught.value.cause is Cause.SOURCE_MISSING


def test_a_file_that_is_listed_twice_is_refused(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = S3Client._list
    monkeypatch.setattr(S3Client, "_list", lambda client: listed(client) * 2)
    with pytest.raises(Failure) as caught:
        resolve(settings)
    assert caught.value.cause is Cause.SOURCE_CORRUPT


def test_keys_are_the_secrets_that_the_spec_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM_ID", "an-id")
    monkeypatch.setenv("TEAM_KEY", "a-secret-key")
    secrets = {"AWS_ACCESS_KEY_ID": "TEAM_ID", "AWS_SECRET_ACCESS_KEY": "TEAM_KEY"}
    keys = read_keys(SPEC.model_copy(update={"secrets": secrets}))
    assert keys.s3 == ("an-id", "a-secret-key", "")
    assert "a-secret-key" not in repr(keys)
    assert read_keys(SPEC).s3 == ()


def test_others_get_the_listed_content_or_none(
    bucket: Bucket, settings: Settings, tmp_path: Path
) -> None:
    """A key of the store's own service leaves no checksum: only the ETag tells what was listed."""
    encrypted = {"ServerSideEncryption": "aws:kms"}
    bucket.put("team/tiny", model(), **encrypted)
    found = resolve(settings)
    assert not any(file.checksum for file in found.files)
    mirrors = mirrors_of(found, settings, KEYS, 60)
    job = job_of(found, mirrors, workspace="new.partial", workers=2, seconds=60, proxies={})
    job_there = json.loads(job) | {"store": str(tmp_path / "there")}
    bucket.put("team/tiny", {WEIGHTS: bytes(len(model()[WEIGHTS]))}, **encrypted)
    assert _brought(job_there)["cause"] == "source-incomplete"
    bucket.put("team/tiny", model(), **encrypted)
    assert _brought(job_there)["result"] == "staged"


def _brought(job: dict[str, Any]) -> Any:
    """The last word of the program that runs on other hosts."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", PROGRAM],
        input=json.dumps(job) + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_others_get_addresses_and_no_keys(settings: Settings) -> None:
    found = resolve(settings)
    (mirror,) = mirrors_of(found, settings, KEYS, 60)
    assert set(mirror["urls"]) == {file.name for file in found.files}
    assert "a-secret-key" not in str(mirror)
    assert "X-Amz-Expires=360" in mirror["urls"][WEIGHTS]


@pytest.mark.parametrize("refused", [False, True])
def test_addresses_name_the_region_that_the_bucket_is_in(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, *, refused: bool
) -> None:
    """Amazon's store redirects requests to another region, and refuses addresses signed for it."""
    found = resolve(settings)
    client = S3Client("models/team/tiny", settings.s3_endpoint, KEYS.s3)
    headers = {"x-amz-bucket-region": "eu-central-1"}
    answer = {"ResponseMetadata": {"HTTPHeaders": headers, "HTTPStatusCode": 403}}

    def head_bucket(Bucket: str) -> dict[str, Any]:
        assert Bucket == "models"
        if refused:
            raise ClientError(answer, "HeadBucket")
        return answer

    monkeypatch.setattr(client._client, "head_bucket", head_bucket)
    urls = client.mirror(found, 60)["urls"].values()
    assert all("%2Feu-central-1%2Fs3%2Faws4_request" in url for url in urls)


def test_others_get_the_authorities_that_this_machine_trusts(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = resolve(settings)
    for content, sent in (("PEM", "PEM"), ("x" * (MIB + 1), "")):
        (tmp_path / "own.pem").write_text(content)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "own.pem"))
        (mirror,) = mirrors_of(found, settings, KEYS, 60)
        assert mirror["authorities"] == sent
