"""Pins of images that a host has from another registry."""

from __future__ import annotations

import pytest

from moorage.adapters.docker.images import LocalImage
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
