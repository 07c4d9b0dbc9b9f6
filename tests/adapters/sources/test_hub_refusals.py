"""What the hub refuses, and what the network does, become causes with words that help."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest

from moorage.adapters.sources.hub_client import HubClient
from moorage.adapters.sources.remote_source import RemoteSource
from moorage.common.failures import Cause, Failure
from moorage.models.assets import Asset
from tests.adapters.sources.conftest import REPO
from tests.certificates import Authority, require_openssl
from tests.http_server import QuietHandler, serving
from tests.hub.faults import API, Fault
from tests.hub.server import Hub
from tests.hub.tiny import model

Make = Callable[..., RemoteSource]


def failure(source: RemoteSource, asset: Asset) -> Failure:
    with pytest.raises(Failure) as caught:
        source.resolve(asset)
    return caught.value


@pytest.mark.parametrize(
    ("fault", "cause", "words"),
    [
        (Fault("unauthorized"), Cause.SOURCE_UNAUTHORIZED, "Invalid credentials"),
        (Fault("private"), Cause.SOURCE_UNAUTHORIZED, "401 for org/tiny"),
        (Fault("gated"), Cause.SOURCE_GATED, "Access is restricted"),
        (Fault("gated for guests"), Cause.SOURCE_GATED, "401 for org/tiny"),
        (Fault(status=403), Cause.SOURCE_GATED, "403 for org/tiny"),
        (Fault("no repository"), Cause.SOURCE_MISSING, "no repository org/tiny"),
        (Fault("no revision"), Cause.SOURCE_MISSING, "org/tiny has no revision 'v1'"),
        (Fault(status=404), Cause.SOURCE_MISSING, "org/tiny at revision 'v1'"),
        (Fault(status=429), Cause.HUB_RATE_LIMITED, "429 for org/tiny"),
        (
            Fault(status=429, headers={"Retry-After": "30"}),
            Cause.HUB_RATE_LIMITED,
            "asks to wait 30 s",
        ),
        (
            Fault(status=429, headers={"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}),
            Cause.HUB_RATE_LIMITED,
            "asks to wait until Wed, 21 Oct 2026",
        ),
        (
            Fault(status=429, headers={"RateLimit": '"api";r=0;t=55'}),
            Cause.HUB_RATE_LIMITED,
            "asks to wait 55 s",
        ),
        (Fault(status=500), Cause.HUB_UNAVAILABLE, "500 for org/tiny"),
        (Fault(status=503), Cause.HUB_UNAVAILABLE, "503 for org/tiny"),
        (Fault(status=400), Cause.HUB_UNAVAILABLE, "400 for org/tiny"),
        (Fault(content=b"<html>Log in to the Wi-Fi</html>"), Cause.HUB_UNAVAILABLE, "like a hub"),
        (Fault(content=b'{"id": "org/tiny"}'), Cause.HUB_UNAVAILABLE, "like a hub"),
        (Fault(content=b"[]"), Cause.HUB_UNAVAILABLE, "like a hub"),
        (Fault(cut_after=20), Cause.HUB_UNAVAILABLE, "org/tiny: IncompleteRead"),
    ],
)
def test_a_refused_listing_has_a_cause(
    hub: Hub, source: Make, asset: Asset, fault: Fault, cause: Cause, words: str
) -> None:
    hub.push(REPO, model(), branch="v1")
    hub.fail(API, fault)
    found = failure(source(), asset.model_copy(update={"revision": "v1"}))
    assert found.cause is cause
    assert words in found.detail


@pytest.mark.parametrize(
    ("fault", "cause", "words"),
    [
        (Fault("gated"), Cause.SOURCE_GATED, "config.json"),
        (Fault("no file"), Cause.SOURCE_INCOMPLETE, "the hub lists org/tiny/config.json"),
        (Fault(status=429), Cause.HUB_RATE_LIMITED, "429 for org/tiny/config.json"),
        (Fault(status=502), Cause.HUB_UNAVAILABLE, "502 for org/tiny/config.json"),
    ],
)
def test_a_refused_file_is_named(
    hub: Hub, source: Make, asset: Asset, fault: Fault, cause: Cause, words: str
) -> None:
    hub.fail("config.json", fault)
    found = failure(source(), asset)
    assert found.cause is cause
    assert words in found.detail


def test_a_hub_that_recovers_is_asked_again(hub: Hub, source: Make, asset: Asset) -> None:
    hub.fail(API, Fault(status=503, times=2))
    hub.fail("config.json", Fault(status=500, times=1))
    hub.fail("model-1-of-2.safetensors", Fault(cut_after=7, times=1))
    assert source(waits=(0, 0)).resolve(asset).revision
    assert len(hub.requests_for(API)) == 3


@pytest.mark.parametrize("fault", [Fault("gated"), Fault(status=429), Fault("no revision")])
def test_what_waiting_does_not_change_is_asked_once(
    hub: Hub, source: Make, asset: Asset, fault: Fault
) -> None:
    hub.fail(API, fault)
    failure(source(waits=(0, 0)), asset)
    assert len(hub.requests_for(API)) == 1


def test_a_silent_hub_is_given_up(hub: Hub, source: Make, asset: Asset) -> None:
    answer = Event()
    hub.fail(API, Fault(hold=answer))
    found = failure(source(timeout=0.1), asset)
    answer.set()
    assert found.cause is Cause.HUB_UNAVAILABLE
    assert found.detail.startswith("org/tiny: TimeoutError")


def test_a_hub_that_is_not_there(asset: Asset, source: Make, hub: Hub) -> None:
    hub.close()
    found = failure(source(), asset)
    assert found.cause is Cause.HUB_UNAVAILABLE
    assert found.detail.startswith("org/tiny: ConnectionRefusedError")


def test_a_hub_whose_certificate_is_not_trusted_here(tmp_path: Path) -> None:
    require_openssl()
    with serving(QuietHandler, trust=Authority(tmp_path).context()) as port:
        client = HubClient(REPO, f"https://127.0.0.1:{port}", waits=(0,))
        with pytest.raises(Failure, match="CERTIFICATE_VERIFY_FAILED") as caught:
            client.list_files("")
    assert caught.value.cause is Cause.HUB_UNAVAILABLE
    assert "SSL_CERT_FILE" in caught.value.suggestion


def test_the_hub_clients_own_offline_switch_is_respected(
    hub: Hub, source: Make, asset: Asset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert failure(source(), asset).cause is Cause.SOURCE_OFFLINE
    assert hub.requests == []


def test_a_name_that_no_repository_can_have(hub: Hub) -> None:
    with pytest.raises(Failure) as caught:
        HubClient("org/a--b", hub.url).list_files("")
    assert caught.value.cause is Cause.SOURCE_MISSING
    assert hub.requests == []


@pytest.mark.parametrize("name", ["/etc/passwd", "../config.json", "a/../../b", "a\\..\\b", ""])
def test_a_file_name_that_leads_out_is_refused(
    hub: Hub, source: Make, asset: Asset, name: str
) -> None:
    siblings = [{"rfilename": name, "size": 1, "blobId": "0"}]
    listing = {"id": REPO, "sha": "0" * 40, "siblings": siblings}
    hub.fail(API, Fault(content=json.dumps(listing).encode()))
    found = failure(source(), asset)
    assert found.cause is Cause.SOURCE_INCOMPLETE
    assert "leads out of the model's directory" in found.detail


@pytest.mark.parametrize(
    ("changes", "cause", "words"),
    [
        ({"size": -1}, Cause.HUB_UNAVAILABLE, "does not tell the size of config.json"),
        ({"size": "12"}, Cause.HUB_UNAVAILABLE, "does not tell the size of config.json"),
        ({"size": 1e999}, Cause.HUB_UNAVAILABLE, "does not answer like a hub"),
        ({"size": 10**300}, Cause.HUB_UNAVAILABLE, "does not answer like a hub"),
        ({"blobId": {"a": 1}}, Cause.HUB_UNAVAILABLE, "gives no checksum of config.json"),
        ({"blobId": "../x"}, Cause.HUB_UNAVAILABLE, "gives no checksum of config.json"),
        ({"lfs": {"size": -5, "sha256": "0", "pointerSize": 1}}, Cause.HUB_UNAVAILABLE, "size"),
        ({"rfilename": "a\nb"}, Cause.SOURCE_CORRUPT, "'a\\nb' is not UTF-8"),
        ({"rfilename": "a\ud800"}, Cause.HUB_UNAVAILABLE, "half of a surrogate pair"),
        ({"rfilename": "a" * 5000}, Cause.SOURCE_CORRUPT, "is too long"),
        ({"rfilename": 5}, Cause.SOURCE_CORRUPT, "a file name is no text"),
    ],
)
def test_a_listing_that_lies_is_refused(
    hub: Hub, source: Make, asset: Asset, changes: dict[str, object], cause: Cause, words: str
) -> None:
    sibling = {"rfilename": "config.json", "size": 1, "blobId": "0" * 40, **changes}
    listing = {"id": REPO, "sha": "0" * 40, "siblings": [sibling]}
    hub.fail(API, Fault(content=json.dumps(listing).encode()))
    found = failure(source(), asset)
    assert found.cause is cause
    assert words in found.detail
    assert found.detail.isprintable()


def test_a_listing_of_more_files_than_any_model_has_is_refused(
    hub: Hub, source: Make, asset: Asset
) -> None:
    siblings = [{"rfilename": f"{n}", "size": 1, "blobId": "0" * 40} for n in range(10_001)]
    listing = {"id": REPO, "sha": "0" * 40, "siblings": siblings}
    hub.fail(API, Fault(content=json.dumps(listing).encode()))
    found = failure(source(), asset)
    assert found.cause is Cause.SOURCE_CORRUPT
    assert "more than 10,000 files" in found.detail


@pytest.mark.parametrize("commit", ["../../etc", "main", "", None])
def test_a_commit_that_is_none_is_refused(
    hub: Hub, source: Make, asset: Asset, commit: str | None
) -> None:
    listing = json.dumps({"id": REPO, "sha": commit, "siblings": []})
    hub.fail(API, Fault(content=listing.encode()))
    assert failure(source(), asset).cause is Cause.HUB_UNAVAILABLE


TOKEN = "hf_VerySecret123"


def test_the_token_is_sent_to_the_hub_and_to_nobody_else() -> None:
    with Hub({REPO: model()}, token=TOKEN, cdn=True) as hub:
        client = HubClient(REPO, hub.url, f" {TOKEN}\n", waits=())
        commit, files = client.list_files("main")
        weights = next(file for file in files if file.name.endswith(".safetensors"))
        client.read(commit, weights, Event(), 0, 8)
        authorized = {(seen.host, seen.authorization) for seen in hub.requests}
        assert authorized == {("hub", f"Bearer {TOKEN}"), ("cdn", None)}


def test_without_a_token_none_is_sent(
    hub: Hub, source: Make, asset: Asset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_lies_around")
    source().resolve(asset)
    assert {seen.authorization for seen in hub.requests} == {None}


def test_the_token_is_in_no_message(hub: Hub, source: Make, asset: Asset) -> None:
    quoting = {"X-Error-Message": f"no access with Authorization: Bearer {TOKEN}"}
    hub.fail(API, Fault(status=403, headers=quoting))
    found = failure(source(token=TOKEN), asset)
    assert "no access with Authorization: Bearer ***" in found.detail
    assert TOKEN not in "".join(traceback.format_exception(found))


def test_a_token_that_cannot_be_one_is_not_sent(source: Make) -> None:
    with pytest.raises(Failure) as caught:
        source(token=f"{TOKEN}\r\nX-Other: 1")
    assert caught.value.cause is Cause.SOURCE_UNAUTHORIZED
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize(
    ("fault", "token", "way_out"),
    [
        ("gated", "hf_t", "Request access at {page} with the account of the token"),
        ("gated", "", "Request access at {page}, and send a token of that account: set the var"),
        ("unauthorized", "hf_t", "Replace the token that was sent: set the variable HF_TOKEN"),
        ("private", "", "Check the name: a hub answers the same for a model that does not exist."),
    ],
)
def test_a_refusal_says_how_to_get_in(hub: Hub, fault: str, token: str, way_out: str) -> None:
    hub.fail(API, Fault(refusal=fault))
    with pytest.raises(Failure) as refused:
        HubClient(REPO, hub.url, token).list_files("")
    assert way_out.format(page=f"{hub.url}/{REPO}") in refused.value.suggestion
