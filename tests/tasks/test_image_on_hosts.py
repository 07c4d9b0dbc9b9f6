"""Step image for replicas on two hosts without a registry: they run the same image, or none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from moorage.adapters.docker.images import LocalImage
from moorage.adapters.registry import pinning
from moorage.common.failures import Cause, Failure
from moorage.placement.placement import Placed
from tasks import image as step
from tasks import restore_image
from tests.builders import a_fleet, a_host, a_model, a_placement, a_profile, a_release, a_spec

NAME, REPOSITORY = "acme/vllm:7", "acme/vllm"
DIGEST, ID, OTHER = (f"sha256:{letter * 64}" for letter in "abc")

PULLED = {name: LocalImage(ID, (DIGEST,)) for name in (NAME, f"{REPOSITORY}@{DIGEST}", ID)}
LOADED = {name: LocalImage(ID) for name in (NAME, ID)}
ANOTHER = {name: LocalImage(OTHER) for name in (NAME, OTHER)}


class Daemon:
    """A daemon with images by their names, which reaches no registry."""

    hosts: Mapping[str, Mapping[str, LocalImage]]

    def __init__(self, address: str) -> None:
        self.address = address

    def find(self, reference: str, **_: bool) -> LocalImage | None:
        return self.hosts[self.address].get(reference)

    def pull(self, reference: str, *_: object) -> None:
        raise Failure(Cause.IMAGE_MISSING, f"{reference}: the registry is away")


def away(*_: object, **__: object) -> None:
    raise Failure(Cause.REGISTRY_UNAVAILABLE, "no route to host")


@pytest.fixture(autouse=True)
def no_registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path))
    monkeypatch.setattr(pinning, "_find", away)
    for module in (pinning, step, restore_image):
        monkeypatch.setattr(module, "DockerImages", Daemon)


def placed_on(monkeypatch: pytest.MonkeyPatch, *there: Mapping[str, LocalImage]) -> Placed:
    """A model with a replica on each host, whose daemons have these images."""
    names = [f"gpu-{number}" for number, _ in enumerate(there, 1)]
    monkeypatch.setattr(
        Daemon,
        "hosts",
        dict(zip((f"ssh://{name}" for name in names), there, strict=True)),
        raising=False,
    )
    hosts = [a_host(name, gpus=1, address=f"ssh://{name}") for name in names]
    spec = a_spec(engine={"name": "vllm", "runtime": "docker", "image": NAME}, replicas=len(hosts))
    placement = a_placement(spec, *hosts)
    assert {seat.host for seat in placement.seats} == set(names)
    return Placed(spec, a_model(), a_profile(), placement, a_fleet(*hosts), "tiny.v1")


@pytest.mark.parametrize(
    ("there", "pinned"),
    [
        ((PULLED, PULLED), f"{REPOSITORY}@{DIGEST}"),
        ((PULLED, LOADED), ID),
        ((LOADED, PULLED), ID),
        ((LOADED, LOADED), ID),
    ],
    ids=["both pulled", "the second loaded", "the first loaded", "both loaded"],
)
async def test_hosts_share_an_image_that_some_have_from_an_archive(
    monkeypatch: pytest.MonkeyPatch, there: tuple[Mapping[str, LocalImage], ...], pinned: str
) -> None:
    placed = placed_on(monkeypatch, *there)
    for found in (await step.choose_image.fn(placed), await step.pull_image.fn(placed)):
        assert found
        assert (found.pinned, found.identity) == (pinned, ID)
        assert all(found.pinned in host for host in there)

    again = await step.pull_image.fn(placed, a_release(image=found))
    assert again
    assert again.pinned == pinned


async def test_images_that_each_host_built_for_itself_are_refused_by_plan_and_deploy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    placed = placed_on(monkeypatch, LOADED, ANOTHER)
    for take in (step.choose_image.fn, step.pull_image.fn):
        with pytest.raises(Failure, match=f"gpu-1 has {ID[:19]}, gpu-2 has {OTHER[:19]}") as caught:
            await take(placed)
        assert caught.value.cause is Cause.IMAGE_MISSING
        assert "docker save | docker load" in caught.value.suggestion


async def test_a_host_without_an_image_that_has_no_digest_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    placed = placed_on(monkeypatch, LOADED, {})
    with pytest.raises(Failure, match=r"gpu-2: .*the registry is away"):
        await step.pull_image.fn(placed)
