"""Pins of images that a host has: from another registry, built there, or before their tag moved."""

from __future__ import annotations

import pytest

from moorage.adapters.docker.images import DockerImages, LocalImage
from moorage.adapters.registry import pinning
from moorage.adapters.registry.registry import RegistryImage
from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.images.image import Image
from moorage.inventory.registries import Registries
from tests.builders import a_host

DIGEST = "sha256:" + "a" * 64
HUB, MIRROR = "vllm/vllm-openai", "mirror.example.com/hub/vllm/vllm-openai"
REGISTRIES = Registries(default="mirror.example.com/hub")


class PulledEarlier:
    """A daemon that has the image of Docker Hub, from before the mirror was configured."""

    def __init__(self, _: str) -> None:
        pass

    def find(self, reference: str) -> LocalImage | None:
        return LocalImage("sha256:id", (DIGEST,), "amd64") if reference == f"{HUB}:v1" else None


@pytest.mark.parametrize(("mirror_answers", "pinned"), [(True, MIRROR), (False, HUB)])
def test_hosts_pull_an_image_of_before_a_mirror_from_the_mirror(
    monkeypatch: pytest.MonkeyPatch, mirror_answers: bool, pinned: str
) -> None:
    def find(places: tuple[str, ...], *_: object, **__: object) -> RegistryImage:
        if not mirror_answers:
            raise Failure(Cause.REGISTRY_UNAVAILABLE, "the mirror is down")
        return RegistryImage(reference=places[0], digest=DIGEST)

    monkeypatch.setattr(pinning, "DockerImages", PulledEarlier)
    monkeypatch.setattr(pinning, "_find", find)
    first, second = (a_host(name, registries=REGISTRIES) for name in ("gpu-1", "gpu-9"))
    image = Image(reference=f"{HUB}:v1", origin=Origin.DEFAULT, reason="default")
    image = pinning.pin_image(image, first)
    assert image.pinned == f"{pinned}@{DIGEST}"
    sources = pinning.pull_sources(image, second.registries)
    assert sources[0].reference == f"{MIRROR}:v1"
    assert sources[-1].reference == f"{pinned}:v1"


NEWER = Registries(default="new.example.com", fallback="spare.example.com/hub")
WRITTEN = Image(reference=f"{HUB}:v1", digest=DIGEST, origin=Origin.DEFAULT, reason="default")
BY_NEWER = [f"new.example.com/{HUB}:v1", f"spare.example.com/hub/{HUB}:v1"]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The references that registries are asked for; the first of them is down."""
    references: list[str] = []

    def find(_: object, reference: str) -> RegistryImage:
        references.append(reference)
        if len(references) == 1 and "new" in reference:
            raise Failure(Cause.REGISTRY_UNAVAILABLE, "down")
        return RegistryImage(reference=reference, digest=DIGEST)

    monkeypatch.setattr(DockerImages, "find", lambda *_, **__: None)
    monkeypatch.setattr("moorage.adapters.registry.registry.RegistryClient.find", find)
    return references


def test_a_pinned_image_is_found_in_the_registries_of_today(asked: list[str]) -> None:
    image = pinning.pin_image(WRITTEN, a_host(registries=REGISTRIES))
    assert asked == [image.reference] == [f"{MIRROR}:v1"]
    sources = [one.reference for one in pinning.pull_sources(image, NEWER)]
    assert sources == [*BY_NEWER, f"{MIRROR}:v1"]
    by_digest = [one.reference for one in pinning.pull_sources(image.without_tag(), NEWER)]
    assert by_digest == [f"{one.removesuffix(':v1')}@{DIGEST}" for one in sources]

    asked.clear()
    assert pinning.current_digest(image, NEWER) == DIGEST
    assert asked == BY_NEWER


def test_an_image_of_an_old_record_is_found_where_it_was_pinned(asked: list[str]) -> None:
    image = WRITTEN.model_copy(update={"reference": f"{MIRROR}:v1"})
    assert [one.reference for one in pinning.pull_sources(image, NEWER)] == [f"{MIRROR}:v1"]
    assert pinning.current_digest(image, NEWER) == DIGEST
    assert asked == [f"{MIRROR}:v1"]


BUILT, THEIRS = DIGEST, "sha256:" + "b" * 64
MISSING = Failure(Cause.IMAGE_MISSING, "no such image or tag")
REFUSED = Failure(Cause.REGISTRY_UNAUTHORIZED, "asks for a login")
DOWN = Failure(Cause.REGISTRY_UNAVAILABLE, "down")


@pytest.mark.parametrize(
    ("is_pulled", "tag", "own", "digest", "reason"),
    [
        (False, BUILT, THEIRS, BUILT, "default"),
        (False, THEIRS, BUILT, THEIRS, f"default{pinning.MOVED}"),
        (False, THEIRS, MISSING, "", f"default{pinning.OTHER}"),
        (False, THEIRS, REFUSED, "", f"default{pinning.OTHER}"),
        (False, THEIRS, DOWN, BUILT, f"default{pinning.UNCHECKED} down"),
        (False, MISSING, MISSING, "", f"default{pinning.LOCAL}"),
        (False, MISSING, BUILT, BUILT, f"default{pinning.UNCHECKED} no such image or tag"),
        (False, DOWN, DOWN, BUILT, f"default{pinning.UNCHECKED} down"),
        (True, THEIRS, MISSING, THEIRS, f"default{pinning.MOVED}"),
    ],
)
def test_a_tag_has_moved_only_if_its_registry_has_the_image_of_the_host(
    monkeypatch: pytest.MonkeyPatch,
    is_pulled: bool,
    tag: str | Failure,
    own: str | Failure,
    digest: str,
    reason: str,
) -> None:
    """With containerd's image store, an image that was only built there has a digest too."""
    local = LocalImage("sha256:id", (BUILT,), "amd64", is_pulled=is_pulled)

    def find(places: tuple[str, ...], *_: object, **__: object) -> RegistryImage:
        answer = own if places == (f"{HUB}@{BUILT}",) else tag
        if isinstance(answer, Failure):
            raise answer
        return RegistryImage(reference=places[0], digest=answer)

    monkeypatch.setattr(DockerImages, "find", lambda *_, **__: local)
    monkeypatch.setattr(pinning, "_find", find)
    image = Image(reference=f"{HUB}:v1", origin=Origin.DEFAULT, reason="default")
    pinned = pinning.pin_image(image, a_host())
    assert (pinned.digest, pinned.reason) == (digest, reason)
    assert pinned.identity == ("" if digest == THEIRS else local.identity)
