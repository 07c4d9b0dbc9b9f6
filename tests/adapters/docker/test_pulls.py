from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from itertools import chain, count
from pathlib import Path
from typing import Any, cast

import pytest
from filelock import FileLock

from moorage.adapters.docker.client import forget_clients
from moorage.adapters.docker.images import MOST_LAYERS, DockerImages, LocalImage
from moorage.adapters.docker.pulls import PullSource, ensure_image
from moorage.adapters.registry.pinning import pull_sources
from moorage.common.failures import Cause, Failure
from moorage.images.image import Image
from moorage.inventory.checks import OLDEST_API
from moorage.inventory.registries import Registries
from tests.builders import an_image
from tests.hostile_engine import CHUNKED, MISBEHAVIOURS, OK, HostileEngine, _chunk


class Daemon:
    """What a daemon has, and what was pulled into it."""

    address = "local"

    def __init__(
        self, *there: str, error: Failure | None = None, refusals: Mapping[str, Cause] = {}
    ) -> None:
        self.there, self.error, self.refusals = set(there), error, refusals
        self.pulled: list[str] = []
        self.started, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()

    def find(self, reference: str, *, by_digest: bool = False) -> LocalImage | None:
        same = {one for one in self.there if one.endswith(reference.partition("@")[2])}
        found = same if by_digest else self.there & {reference}
        return LocalImage("sha256:1") if found else None

    def pull(
        self, reference: str, on_progress: Callable[[int, int], None], _: object, seconds: float
    ) -> None:
        assert seconds
        self.pulled.append(reference)
        self.started.set()
        assert self.go_on.wait(60)
        if self.error:
            raise self.error
        for registry, cause in self.refusals.items():
            if reference.startswith(registry):
                raise Failure(cause, f"{registry} refuses")
        on_progress(1, 1)
        self.there.add(reference)

    def tag(self, pinned: str, reference: str) -> None:
        assert pinned in self.there
        self.there.add(reference)


def have(daemon: Daemon, image: Image, locks: Path, **more: Any) -> None:
    images = cast(DockerImages, daemon)
    sources = (PullSource(image.reference, lambda: None),)
    options = {"sources": sources, "wait_seconds": 10.0, **more}
    ensure_image(images, image, locks, lambda _done, _total: None, **options)


def test_an_image_is_pulled_by_digest_and_keeps_its_tag(tmp_path: Path) -> None:
    daemon, image = Daemon(), an_image()
    have(daemon, image, tmp_path / "locks")
    assert daemon.pulled == [image.pinned]
    assert image.reference in daemon.there


@pytest.mark.parametrize("image", [an_image(), an_image(digest="")], ids=["digest", "tag"])
def test_what_is_there_is_not_pulled_and_needs_no_login(tmp_path: Path, image: Image) -> None:
    daemon = Daemon(image.pinned)

    def no_login() -> None:
        raise AssertionError("nobody needs the secret")

    have(daemon, image, tmp_path, sources=(PullSource(image.reference, no_login),))
    assert daemon.pulled == []


REGISTRIES = Registries.model_validate({"default": "mirror:5000/hub", "fallback": "spare:5000"})
MIRROR, SPARE = "mirror:5000/hub/vllm", "spare:5000/vllm"
EVERYWHERE = dict.fromkeys((MIRROR, SPARE, "vllm"), Cause.IMAGE_PULL_FAILED)


@pytest.mark.parametrize(
    ("refusals", "served"),
    [
        ({"vllm": Cause.IMAGE_PULL_FAILED}, MIRROR),
        ({MIRROR: Cause.IMAGE_MISSING, "vllm": Cause.IMAGE_PULL_FAILED}, SPARE),
        ({MIRROR: Cause.IMAGE_MISSING, SPARE: Cause.REGISTRY_UNAUTHORIZED}, "vllm"),
    ],
)
def test_a_digest_is_pulled_from_the_first_configured_registry_that_serves_it(
    tmp_path: Path, refusals: dict[str, Cause], served: str
) -> None:
    daemon, image = Daemon(refusals=refusals), an_image(reference="vllm/vllm-openai:v1")
    have(daemon, image, tmp_path, sources=pull_sources(image, REGISTRIES))
    assert daemon.there == {f"{served}/vllm-openai@{image.digest}", f"{served}/vllm-openai:v1"}


def test_without_any_registry_the_same_digest_of_another_one_will_do(tmp_path: Path) -> None:
    image = an_image(reference="vllm/vllm-openai:v1")
    sources = pull_sources(image, REGISTRIES)
    have(Daemon(f"old/name@{image.digest}", refusals=EVERYWHERE), image, tmp_path, sources=sources)
    with pytest.raises(Failure, match="hub/vllm refuses; spare:5000/vllm refuses; vllm refuses"):
        have(Daemon(refusals=EVERYWHERE), image, tmp_path, sources=sources)


def test_a_full_disk_is_not_tried_with_the_next_registry(tmp_path: Path) -> None:
    daemon, image = Daemon(refusals={MIRROR: Cause.DISK_FULL}), an_image(reference="vllm/a:v1")
    with pytest.raises(Failure, match="refuses") as caught:
        have(daemon, image, tmp_path, sources=pull_sources(image, REGISTRIES))
    assert (caught.value.cause, len(daemon.pulled)) == (Cause.DISK_FULL, 1)


def test_a_tag_is_not_pulled_from_another_registry() -> None:
    image = an_image(reference="vllm/vllm-openai:v1", digest="")
    assert [one.reference for one in pull_sources(image, REGISTRIES)] == [image.reference]


def test_an_image_without_a_digest_is_pulled_by_its_name(tmp_path: Path) -> None:
    daemon, image = Daemon(), an_image(digest="")
    have(daemon, image, tmp_path)
    assert daemon.pulled == [image.reference]


def test_many_who_want_one_image_pull_it_once(tmp_path: Path) -> None:
    daemon, image = Daemon(), an_image()
    daemon.go_on.clear()
    flows = [threading.Thread(target=have, args=(daemon, image, tmp_path)) for _ in range(5)]
    for flow in flows:
        flow.start()
    assert daemon.started.wait(60)
    daemon.go_on.set()
    for flow in flows:
        flow.join(10)
    assert daemon.pulled == [image.pinned]


def test_one_that_waits_too_long_says_so(tmp_path: Path) -> None:
    daemon = Daemon()
    have(daemon, an_image(), tmp_path)
    (lock,) = tmp_path.iterdir()
    daemon.there.clear()
    with FileLock(lock), pytest.raises(Failure, match=r"did not end within 0\.1 s") as caught:
        have(daemon, an_image(), tmp_path, wait_seconds=0.1)
    assert caught.value.cause is Cause.IMAGE_PULL_TIMEOUT


def test_a_pull_that_fails_frees_the_way_for_the_next(tmp_path: Path) -> None:
    failure = Failure(Cause.IMAGE_PULL_FAILED, "cut")
    daemon = Daemon(error=failure)
    for _ in range(2):
        with pytest.raises(Failure, match="cut"):
            have(daemon, an_image(), tmp_path)
    assert len(daemon.pulled) == 2


def test_a_pull_without_end_has_a_deadline_and_few_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    event = b'{"id": "%d", "status": "Downloading", "progressDetail": {"current": 1, "total": 1}}'
    events = (_chunk(event % number + b"\n") for number in count())
    monkeypatch.setitem(MISBEHAVIOURS, "pulls", lambda: chain([CHUNKED], events))
    path, totals = f"/v{OLDEST_API}/images/create?tag=v1&fromImage=engine", set[int]()
    with HostileEngine("pulls", path) as daemon:
        images = DockerImages(daemon.url.replace("http:", "tcp:"))
        with pytest.raises(Failure) as caught:
            images.pull("engine:v1", lambda _, total: totals.add(total), seconds=1.0)
        forget_clients()
    assert caught.value.cause is Cause.IMAGE_PULL_TIMEOUT
    assert max(totals) == MOST_LAYERS


ONCE = OK + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
REFUSED = b'{"error": "pull access denied for engine"}'
FULL = b'{"error": "no space left on device"}'


@pytest.mark.parametrize(
    ("event", "cause", "words"),
    [
        (b'{"status": "Pull complete"}', None, ""),
        (REFUSED, Cause.REGISTRY_UNAUTHORIZED, "denied.*docker-credential-of-nobody not installed"),
        (FULL, Cause.DISK_FULL, "no space left on device$"),
    ],
)
@pytest.mark.filterwarnings("ignore:docker-credential-of-nobody")
def test_a_pull_goes_on_without_a_login_when_the_helper_of_docker_login_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, event: bytes, cause: Cause | None, words: str
) -> None:
    (tmp_path / "config.json").write_text('{"credsStore": "of-nobody"}')
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    answer = [ONCE, _chunk(event + b"\n"), b"0\r\n\r\n"]
    monkeypatch.setitem(MISBEHAVIOURS, "pulls", lambda: iter(answer))
    refused = pytest.raises(Failure, match=words) if cause else nullcontext()
    path = f"/v{OLDEST_API}/images/create?tag=v1&fromImage=engine"
    with HostileEngine("pulls", path) as daemon:
        images = DockerImages(daemon.url.replace("http:", "tcp:"))
        with refused as caught:
            images.pull("engine:v1", lambda _done, _total: None, seconds=10.0)
        forget_clients()
    assert cause is None or (caught and caught.value.cause is cause)
