"""A hub that lies, leads elsewhere, drips or never ends is refused in words, in time."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from moorage.adapters.sources.hub_client import HubClient
from moorage.adapters.sources.remote_source import RemoteSource
from moorage.common.failures import Cause, Failure
from moorage.common.units import MIB
from moorage.models.assets import Asset
from moorage.models.source import ModelFile
from tests.adapters.sources.conftest import REPO
from tests.hostile_engine import MISBEHAVIOURS, HostileEngine
from tests.hub.faults import API, Fault
from tests.hub.server import Hub

Make = Callable[..., RemoteSource]
COMMIT = "0" * 40
HANG_SECONDS = 10.0


def listing(*siblings: Any, **more: Any) -> bytes:
    return json.dumps({"sha": COMMIT, "siblings": list(siblings), **more}).encode()


def sibling(**changes: Any) -> dict[str, Any]:
    return {"rfilename": "config.json", "size": 2, "blobId": COMMIT, **changes}


def refused(source: RemoteSource, asset: Asset) -> Failure:
    with pytest.raises(Failure) as caught:
        source.resolve(asset)
    return caught.value


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[" * 200_000 + b"]" * 200_000, "is nested more than 64 deep"),
        (b'{"sha":' * 200_000, "is nested more than 64 deep"),
        (listing(sibling(size=-1)), "does not tell the size of config.json"),
        (listing(sibling(size="2")), "does not tell the size"),
        (listing(sibling(size=True)), "does not tell the size"),
        (listing(sibling(size=2.0)), "does not tell the size"),
        (listing(sibling(size=10**100)), "does not tell the size"),
        (listing(sibling(lfs={"size": -5, "sha256": "0" * 64})), "does not tell the size"),
        (
            listing(sibling(lfs={"size": 5, "sha256": "../../x"})),
            "gives no checksum",
        ),
        (listing(sibling(blobId=7)), "gives no checksum"),
        (listing(sibling(rfilename=5)), "a file name is no text"),
        (listing(sibling(rfilename="a\x1b[2J")), "the file name"),
        (listing(sibling(rfilename="x" * 5000)), "is too long"),
        (listing("config.json"), "it lists what is no file"),
        (listing(sibling(), sibling()), "it lists a file twice"),
        (listing(*[5] * 10_001), "there are more than 10,000 files"),
        (listing(siblings=7), "it lists no files"),
        (listing(sha=["0"]), "it names no commit"),
        (listing().replace(b'"' + COMMIT.encode(), b'"\\ud800'), "half of a surrogate pair"),
        (listing(huge=1).replace(b"1}", b"1e999}"), "a number that is too large"),
        (b'"text"', "is no JSON object"),
        (b" " * (33 * MIB), "is larger than 32.0 MiB"),
    ],
)
def test_a_listing_that_lies_is_refused(
    hub: Hub, source: Make, asset: Asset, content: bytes, words: str
) -> None:
    hub.fail(API, Fault(content=content))
    failure = refused(source(), asset)
    assert failure.cause in (Cause.HUB_UNAVAILABLE, Cause.SOURCE_CORRUPT)
    assert words in failure.detail
    assert failure.detail.isprintable()
    assert len(failure.detail) < 1500


@pytest.mark.parametrize("file", [API, "config.json"])
@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("http://169.254.169.254/latest/meta-data", "which is not https"),
        ("https://169.254.169.254/latest", "a link-local address"),
    ],
)
def test_a_redirect_that_leads_inside_is_not_followed(
    hub: Hub, source: Make, asset: Asset, file: str, target: str, words: str
) -> None:
    hub.fail(file, Fault(status=302, headers={"Location": target}))
    failure = refused(source(), asset)
    assert failure.cause is Cause.HUB_UNAVAILABLE
    assert words in failure.detail


def test_redirects_in_a_circle_end(hub: Hub, source: Make, asset: Asset) -> None:
    hub.fail(API, Fault(status=302, headers={"Location": f"/api/models/{REPO}"}))
    assert refused(source(), asset).cause is Cause.HUB_UNAVAILABLE
    assert len(hub.requests_for(API)) == 0  # none was answered by anything but a redirect
    assert len(hub.requests) < 10


@pytest.mark.parametrize(
    "misbehaviour",
    [
        *("drips its body", "drips its headers", "drips its status", "drips chunks"),
        *("drips its refusal",),
        *("says nothing", "says continue for ever", "sends for ever", "sends headers for ever"),
        *("extends its chunks", "extends each chunk", "sends trailers for ever", "promises 10 GB"),
        *("never ends its status", "ends too soon", "speaks HTTP 0.9", "nests lists"),
    ],
)
def test_a_listing_has_one_deadline_and_one_limit(misbehaviour: str) -> None:
    assert misbehaviour in MISBEHAVIOURS
    tracemalloc.start()
    with HostileEngine(misbehaviour) as hub:
        client = HubClient(REPO, hub.url, timeout=5, listing_seconds=0.5, waits=())
        began = time.monotonic()
        with pytest.raises(Failure) as caught:
            client.list_files("")
        peak = tracemalloc.get_traced_memory()[1]
        assert caught.value.cause is Cause.HUB_UNAVAILABLE
        assert time.monotonic() - began < HANG_SECONDS
        assert peak < 100 * MIB
    tracemalloc.stop()


@pytest.mark.parametrize(
    "misbehaviour", ["drips its headers", "drips its refusal", "says continue for ever"]
)
def test_a_file_has_to_begin_in_time(misbehaviour: str, tmp_path: Path) -> None:
    with HostileEngine(misbehaviour) as hub:
        client = HubClient(REPO, hub.url, timeout=5, listing_seconds=0.3, waits=())
        began = time.monotonic()
        with pytest.raises(Failure):
            client.fetch(COMMIT, ModelFile(name="a", size=9), tmp_path / "a", Event())
        assert time.monotonic() - began < HANG_SECONDS


def test_headers_that_drip_do_not_outlast_the_deadline(
    hub: Hub, source: Make, asset: Asset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moorage.adapters.sources.remote_source.METADATA_SECONDS", 0.5)
    weights = (1 << 20).to_bytes(8, "little") + b" " * (1 << 20)
    hub.fail("model-1-of-2.safetensors", Fault(content=weights, pause=1))
    began = time.monotonic()
    assert refused(source(), asset).cause is Cause.DOWNLOAD_TIMEOUT
    assert time.monotonic() - began < HANG_SECONDS


def test_a_file_whose_name_is_also_a_folder_is_refused(
    hub: Hub, source: Make, asset: Asset
) -> None:
    names = ("config.json", "config.json/a.json", "model.safetensors")
    hub.fail(API, Fault(content=listing(*(sibling(rfilename=name) for name in names))))
    assert refused(source(), asset).cause is Cause.SOURCE_CORRUPT


def test_of_a_file_that_never_ends_no_more_is_taken_than_was_announced(tmp_path: Path) -> None:
    with HostileEngine("sends for ever") as hub:
        client = HubClient(REPO, hub.url, timeout=5, waits=())
        client.fetch(COMMIT, ModelFile(name="a", size=1000), tmp_path / "a", Event())
    assert (tmp_path / "a").stat().st_size == 1000


@pytest.mark.parametrize("content", [b"[" * 200_000, b"x" * (20 * MIB), b'{"error": "\\u001b[2J"}'])
def test_the_words_of_a_refusal_are_bounded_and_harmless(
    source: Make, asset: Asset, hub: Hub, content: bytes
) -> None:
    hub.fail(API, Fault(content=content, status_with_content=403))
    failure = refused(source(), asset)
    assert failure.cause is Cause.SOURCE_GATED
    assert failure.detail.isprintable()
    assert len(failure.detail) < 1500
