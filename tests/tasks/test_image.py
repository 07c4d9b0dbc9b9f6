"""Step image against real registries and a real daemon."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from platform import machine
from typing import Any
from uuid import uuid4

import docker
import pytest

from moorage.adapters.docker.images import DockerImages, local_name
from moorage.adapters.secrets import read_secrets
from moorage.common.failures import Cause, ExitCode, Failure
from moorage.common.values import Origin
from moorage.images.image import Image
from moorage.inventory.fleet import Fleet
from moorage.inventory.registries import Registries
from moorage.inventory.survey.facts import ARCHITECTURES
from moorage.placement.placement import Placed
from moorage.releases.release_row import ReleaseRow
from tasks.image import choose_image, image_drift, pull_image
from tasks.restore_image import restore_image
from tests.builders import (
    a_container,
    a_fleet,
    a_host,
    a_model,
    a_placement,
    a_plan,
    a_profile,
    a_release,
    a_row,
    a_spec,
)
from tests.local_registry import PASSWORD, USER, LocalRegistry, empty_image, require_registry
from tests.uploads import layer, upload_image, upload_index

pytestmark = pytest.mark.docker

SECRET = "REGISTRY_PASSWORD"
TAG = "v1"
ARCHITECTURE = ARCHITECTURES.get(machine(), machine())


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    yield from _running(tmp_path_factory, protected=False)


@pytest.fixture(scope="module")
def protected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    yield from _running(tmp_path_factory, protected=True)


def _running(factory: pytest.TempPathFactory, *, protected: bool) -> Iterator[LocalRegistry]:
    require_registry()
    registry = LocalRegistry(factory.mktemp("registry") / "data", protected=protected)
    registry.start()
    yield registry
    registry.close()


@pytest.fixture
def down(tmp_path: Path) -> LocalRegistry:
    """A registry that is not running."""
    return LocalRegistry(tmp_path / "down")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv(SECRET, PASSWORD)


def wanted(image: str, registries: dict[str, Any] | None = None) -> Placed:
    spec = a_spec(engine={"name": "vllm", "runtime": "docker", "image": image})
    known = Registries.model_validate(registries or {})
    host = a_host(address="local", architecture=ARCHITECTURE, registries=known)
    placement = a_placement(spec, host)
    return Placed(spec, a_model(), a_profile(), placement, a_fleet(host), "tiny.v1")


async def planned(image: str, **more: Any) -> Image:
    chosen = await choose_image.fn(wanted(image, **more))
    assert chosen
    return chosen


async def pulled(image: str, **more: Any) -> Image:
    chosen = await pull_image.fn(wanted(image, **more))
    assert chosen
    return chosen


async def test_a_tag_is_pinned_by_the_plan_and_pulled_by_its_digest(
    registry: LocalRegistry,
) -> None:
    digest = registry.push("team/engine", TAG)
    reference = f"{registry.host}/team/engine:{TAG}"

    plan = await planned(reference)
    assert (plan.reference, plan.digest, plan.identity) == (reference, digest, "")
    assert DockerImages("local").find(reference) is None

    image = await pulled(reference)
    assert image.pinned == plan.pinned == f"{registry.host}/team/engine@{digest}"
    there = DockerImages("local").find(reference)
    assert there
    assert (there.identity, there.digests) == (image.identity, (digest,))


async def test_what_the_host_has_is_used_when_its_registry_is_away_and_that_is_said(
    tmp_path: Path,
) -> None:
    require_registry()
    away = LocalRegistry(tmp_path / "away")
    away.start()
    digest = away.push("engine", TAG)
    await pulled(f"{away.host}/engine:{TAG}")
    away.stop()
    for again in (planned, pulled):
        image = await again(f"{away.host}/engine:{TAG}")
        assert image.digest == digest
        assert "its registry did not answer, it is taken as the host has it" in image.reason
    named = await planned(f"{away.host}/engine@{digest}")
    assert (named.digest, named.reason) == (digest, "engine.image in the spec")
    away.close()


async def test_the_registry_decides_what_a_tag_stands_for(registry: LocalRegistry) -> None:
    reference = f"{registry.host}/moving/engine:{TAG}"
    first = registry.push("moving/engine", TAG)
    assert (await pulled(reference)).digest == first
    second, _ = upload_image(registry, "moving/engine", TAG, layer(10), architecture=ARCHITECTURE)
    plan = await planned(reference)
    assert (plan.digest, plan.identity) == (second, "")
    assert "its tag was moved since the host pulled it" in plan.reason
    image = await pulled(reference)
    assert (image.digest, image.identity) != (first, "")
    assert DockerImages("local").find(reference) == DockerImages("local").find(image.pinned)


def _row(image: Image) -> ReleaseRow:
    return a_row(a_release(image=image))


async def test_a_tag_that_was_moved_is_told_of_a_release_that_serves(
    registry: LocalRegistry, down: LocalRegistry
) -> None:
    reference = f"{registry.host}/drifting/engine:{TAG}"
    upload_image(registry, "drifting/engine", TAG, layer(10), architecture=ARCHITECTURE)
    image = await planned(reference)
    assert await image_drift.fn(_row(image), Fleet()) == ""
    newer, _ = upload_image(registry, "drifting/engine", TAG, layer(10), architecture=ARCHITECTURE)
    words = f"set `engine.image: {registry.host}/drifting/engine@{newer}` to take it"
    assert words in await image_drift.fn(_row(image), Fleet())

    by_digest = image.model_copy(update={"reference": image.pinned})
    away = image.model_copy(update={"reference": f"{down.host}/engine:{TAG}"})
    built_here = image.model_copy(update={"digest": ""})
    for other in (by_digest, away, built_here):
        assert await image_drift.fn(_row(other), Fleet()) == ""


async def test_a_release_that_starts_again_has_the_same_image_again(
    registry: LocalRegistry,
) -> None:
    first, _ = upload_image(registry, "again/engine", TAG, layer(10), architecture=ARCHITECTURE)
    image = await pulled(f"{registry.host}/again/engine:{TAG}")
    upload_image(registry, "again/engine", TAG, layer(10), architecture=ARCHITECTURE)
    docker.from_env().images.remove(image.identity, force=True)

    container = a_container(runtime="docker", image=image.pinned)
    plan = a_plan(container)
    restore_image(a_release(image=image, plan=plan), plan)
    there = DockerImages("local").find(image.pinned)
    assert there
    assert (there.identity, there.digests) == (image.identity, (first,))
    assert DockerImages("local").find(image.reference) is None


async def test_an_earlier_image_comes_from_the_mirror_that_its_registry_has_by_now(
    registry: LocalRegistry,
) -> None:
    """It was pulled from Docker Hub; its name stays, although the host has it under another one."""
    digest, _ = upload_image(registry, "hub/team/old", TAG, layer(10), architecture=ARCHITECTURE)
    recorded = Image(
        reference=f"team/old:{TAG}", digest=digest, origin=Origin.USER, reason="engine.image"
    )
    registries = {"default": f"{registry.host}/hub"}
    target = a_release(image=recorded)
    image = await pull_image.fn(wanted(recorded.reference, registries=registries), target)
    assert image
    assert image.pinned == f"team/old@{digest}"
    assert DockerImages("local").find(image.pinned, by_digest=True)
    client = docker.from_env()
    container = client.containers.create(
        local_name(client.api.images, image.pinned), ["/never-started"]
    )
    container.remove()
    there = DockerImages("local").find(f"{registry.host}/hub/team/old@{digest}")
    assert there
    assert there.identity == image.identity


async def test_what_was_built_on_the_host_needs_no_registry() -> None:
    require_registry()
    client, name = docker.from_env(), f"moorage/built-here-{uuid4().hex[:8]}"
    client.api.import_image_from_data(empty_image(), repository=name, tag=TAG)
    for step in (planned, pulled):
        image = await step(f"{name}:{TAG}")
        assert (image.digest, image.pinned) == ("", client.images.get(f"{name}:{TAG}").id)
    client.images.remove(f"{name}:{TAG}", force=True)


OTHER = {"amd64": "arm64"}.get(ARCHITECTURE, "amd64")


async def test_an_index_is_pinned_and_the_hosts_processors_find_theirs(
    registry: LocalRegistry,
) -> None:
    built = {
        cpu: upload_image(registry, "many/engine", cpu, layer(10), architecture=cpu)[0]
        for cpu in ("amd64", "arm64")
    }
    digest = upload_index(registry, "many/engine", TAG, built)
    assert digest not in built.values()
    reference = f"{registry.host}/many/engine:{TAG}"
    assert (await planned(reference)).digest == digest
    image = await pulled(reference)
    assert image.pinned == f"{registry.host}/many/engine@{digest}"
    there = DockerImages("local").find(image.pinned)
    assert there
    assert there.architecture == ARCHITECTURE
    fetched = registry.requests(f"many/engine/manifests/{built[OTHER]}")
    assert all(how != "GET" or status != 200 for how, _, status in fetched[1:])


async def test_an_image_for_other_processors_is_refused_by_the_plan_or_after_the_pull(
    registry: LocalRegistry,
) -> None:
    alone, _ = upload_image(registry, "other/engine", "alone", layer(10), architecture=OTHER)
    upload_index(registry, "other/engine", "index", {OTHER: alone})
    for step in (planned, pulled):
        with pytest.raises(Failure, match=f"is built for linux/{OTHER}, the host is") as caught:
            await step(f"{registry.host}/other/engine:index")
        assert caught.value.cause is Cause.NO_IMAGE
    with pytest.raises(Failure, match=f"is built for {OTHER}, the host is") as caught:
        await pulled(f"{registry.host}/other/engine:alone")
    assert caught.value.cause is Cause.NO_IMAGE


async def test_a_reference_by_digest_keeps_it(registry: LocalRegistry) -> None:
    digest = registry.push("pinned", TAG)
    reference = f"{registry.host}/pinned@{digest}"
    assert (await planned(reference)).pinned == reference
    assert (await pulled(reference)).pinned == reference


async def test_a_registry_that_sends_something_else_for_a_digest_is_not_believed(
    tmp_path: Path,
) -> None:
    require_registry()
    lying = LocalRegistry(tmp_path / "lying")
    lying.start()
    digest, _ = upload_image(lying, "engine", TAG, layer(10), architecture=ARCHITECTURE)
    other, _ = upload_image(lying, "engine", "other", layer(20), architecture=ARCHITECTURE)
    theirs, stored = (
        next(lying.folder.rglob(f"blobs/sha256/*/{one.partition(':')[2]}/data"))
        for one in (other, digest)
    )
    stored.write_bytes(theirs.read_bytes())
    try:
        with pytest.raises(Failure) as caught:
            await pulled(f"{lying.host}/engine@{digest}")
        assert caught.value.cause.exit_code == ExitCode.IMAGE
        assert DockerImages("local").find(f"{lying.host}/engine@{digest}") is None
        assert not docker.from_env().images.list(f"{lying.host}/engine")
    finally:
        lying.close()


async def test_an_image_without_a_registry_comes_from_the_default_one(
    registry: LocalRegistry,
) -> None:
    digest = registry.push("hub/team/engine", TAG)
    image = await pulled(f"team/engine:{TAG}", registries={"default": f"{registry.host}/hub"})
    assert image.pinned == f"{registry.host}/hub/team/engine@{digest}"


async def test_the_fallback_serves_when_the_first_registry_is_down(
    registry: LocalRegistry, down: LocalRegistry
) -> None:
    digest = registry.push("team/spare", TAG)
    registries = {"default": down.host, "fallback": registry.host}
    image = await pulled(f"team/spare:{TAG}", registries=registries)
    assert image.pinned == f"{registry.host}/team/spare@{digest}"


async def test_a_missing_tag_is_told_by_the_plan_and_by_the_pull(registry: LocalRegistry) -> None:
    registry.push("team/engine", TAG)
    for step in (planned, pulled):
        with pytest.raises(Failure, match="has no such image or tag v9") as caught:
            await step(f"{registry.host}/team/engine:v9")
        assert caught.value.cause is Cause.IMAGE_MISSING


async def test_a_private_image_is_pulled_with_the_account_and_the_secret(
    protected: LocalRegistry,
) -> None:
    digest = protected.push("private/engine", TAG)
    login = {"registry": protected.host, "username": USER, "password": SECRET}
    reference = f"{protected.host}/private/engine:{TAG}"
    image = await pulled(reference, registries={"logins": [login]})
    assert image.digest == digest
    assert PASSWORD not in image.model_dump_json()


async def test_wrong_credentials_are_told_at_once(
    protected: LocalRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SECRET, "wrong-horse")
    assert read_secrets([SECRET]) == {SECRET: "wrong-horse"}
    login = {"registry": protected.host, "username": USER, "password": SECRET}
    for step in (planned, pulled):
        with pytest.raises(Failure, match=f"refused the login of {USER}") as caught:
            await step(f"{protected.host}/private/other:v1", registries={"logins": [login]})
        assert caught.value.cause is Cause.REGISTRY_UNAUTHORIZED
        assert "wrong-horse" not in str(caught.value)


async def test_without_an_account_docker_is_left_to_find_its_own(
    protected: LocalRegistry,
) -> None:
    reference = f"{protected.host}/private/other:v1"
    plan = await planned(reference)
    assert plan.digest == ""
    assert "its digest is not known" in plan.reason
    assert "asks for a login, and none is configured for it" in plan.reason
    with pytest.raises(Failure, match="no basic auth credentials") as caught:
        await pulled(reference)
    assert caught.value.cause is Cause.REGISTRY_UNAUTHORIZED


async def test_a_registry_that_is_down_is_told_by_the_pull(down: LocalRegistry) -> None:
    plan = await planned(f"{down.host}/engine:v1")
    assert "its digest is not known" in plan.reason
    with pytest.raises(Failure, match="connection refused") as caught:
        await pulled(f"{down.host}/engine:v1")
    assert caught.value.cause is Cause.IMAGE_PULL_FAILED


async def test_flows_that_want_one_image_fetch_each_layer_once(registry: LocalRegistry) -> None:
    digest, layers = upload_image(
        registry, "wanted/by-many", TAG, layer(300_000), layer(10), architecture=ARCHITECTURE
    )
    reference = f"{registry.host}/wanted/by-many:{TAG}"
    images = await asyncio.gather(*(pulled(reference) for _ in range(4)))
    assert {image.digest for image in images} == {digest}
    fetched = registry.fetched()
    assert [fetched[f"/v2/wanted/by-many/blobs/{item}"] for item in layers] == [1, 1]
