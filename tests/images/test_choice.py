from __future__ import annotations

import pytest

from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.images.catalogue import runner_rows
from moorage.images.choice import choose_image
from moorage.images.image import Image
from moorage.inventory.fleet_engines import EngineVersion, EngineVersions
from moorage.spec import EngineName
from tests.builders import a_spec, an_image

DIGEST = f"sha256:{'0' * 64}"


def chosen(
    kind: str, architecture: str = "amd64", engine: EngineName = EngineName.VLLM, **wish: str
) -> Image:
    return choose_image(a_spec(engine=wish), engine, "0.32.0", kind, architecture)


@pytest.mark.parametrize(
    ("kind", "architecture", "reference"),
    [
        ("cuda", "amd64", "vllm/vllm-openai:v0.32.0"),
        ("cuda", "arm64", "vllm/vllm-openai:v0.32.0"),
        ("rocm", "amd64", "vllm/vllm-openai-rocm:v0.32.0"),
        ("cpu", "amd64", "vllm/vllm-openai-cpu:v0.32.0"),
        ("cpu", "arm64", "vllm/vllm-openai-cpu:v0.32.0"),
    ],
)
def test_the_official_image_suits_the_hardware(
    kind: str, architecture: str, reference: str
) -> None:
    image = chosen(kind, architecture)
    assert (image.reference, image.engine_version) == (reference, "0.32.0")
    assert image.origin == Origin.DEFAULT


def test_the_version_of_the_spec_selects_the_tag() -> None:
    image = chosen("cuda", version="0.30.1")
    assert (image.reference, image.engine_version) == ("vllm/vllm-openai:v0.30.1", "0.30.1")


@pytest.mark.parametrize("kind", ["cuda", "cann", "cpu"])
def test_an_image_in_the_spec_wins_on_any_hardware(kind: str) -> None:
    image = chosen(kind, "s390x", image="own/vllm:7", version="0.30.1")
    assert (image.reference, image.engine_version) == ("own/vllm:7", "0.30.1")
    assert image.origin == Origin.USER


OWN = EngineVersions(
    default_version="0.30.1", versions={"0.30.1": EngineVersion(image="acme/vllm:7")}
)


@pytest.mark.parametrize(
    ("wish", "reference", "version"),
    [
        ({}, "acme/vllm:7", "0.30.1"),
        ({"version": "0.30.1"}, "acme/vllm:7", "0.30.1"),
        ({"version": "0.31.0"}, "vllm/vllm-openai:v0.31.0", "0.31.0"),
        ({"image": "own/vllm:8"}, "own/vllm:8", ""),
    ],
)
def test_an_image_of_ones_own_for_a_version_comes_before_the_official_one(
    wish: dict[str, str], reference: str, version: str
) -> None:
    spec = a_spec(engine=wish)
    image = choose_image(spec, EngineName.VLLM, "0.32.0", "cuda", "amd64", configured=OWN)
    assert (image.reference, image.engine_version) == (reference, version)


def test_the_default_version_of_a_fleet_needs_no_image_of_its_own() -> None:
    older = EngineVersions(default_version="0.31.0")
    image = choose_image(a_spec(), EngineName.VLLM, "0.32.0", "cuda", "amd64", configured=older)
    assert (image.reference, image.engine_version) == ("vllm/vllm-openai:v0.31.0", "0.31.0")


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("vllm/vllm-openai:v0.30.0", "0.30.0"),
        ("mirror.io:5000/hub/vllm/vllm-openai:v0.32.0-cu129", "0.32.0"),
        ("vllm/vllm-openai-cpu:v0.31.0rc1", "0.31.0rc1"),
        ("gpustack/runner:cuda12.9-vllm0.18.0", "0.18.0"),
        ("vllm/vllm-openai:nightly", ""),
        ("vllm/vllm-openai:v0.30.0-ours", ""),
        (f"vllm/vllm-openai@{DIGEST}", ""),
        ("acme/vllm:0.30.0", ""),
    ],
)
def test_the_tag_of_a_published_image_tells_the_version_and_no_other(
    image: str, version: str
) -> None:
    assert chosen("cuda", image=image).engine_version == version


MORE = runner_rows(
    [
        {
            "backend": "rocm",
            "backend_version": "6.4",
            "backend_variant": "",
            "service": "vllm",
            "service_version": version,
            "platform": f"linux/{architecture}",
            "docker_image": f"gpustack/runner:rocm6.4-vllm{version}",
            "deprecated": False,
        }
        for version, architecture in (("0.16.0", "amd64"), ("0.15.1", "arm64"))
    ]
)


def test_other_images_are_asked_for_only_where_no_official_one_can_serve() -> None:
    def reference(architecture: str) -> str:
        args = (a_spec(), EngineName.VLLM, "0.32.0", "rocm", architecture)
        return choose_image(*args, runtime="6.4", more=MORE).reference

    assert reference("amd64") == "vllm/vllm-openai-rocm:v0.32.0"
    assert reference("arm64") == "gpustack/runner:rocm6.4-vllm0.15.1"


def test_a_refusal_says_what_stands_in_the_way_of_all_of_them() -> None:
    args = (a_spec(), EngineName.VLLM, "0.32.0", "rocm", "arm64")
    why = "built for amd64, the host is arm64; .* built for ROCM 6.4, the host runs ROCM 5.0"
    with pytest.raises(Failure, match=why):
        choose_image(*args, runtime="5.0", more=MORE)


@pytest.mark.parametrize(
    ("kind", "architecture", "engine", "why"),
    [
        ("rocm", "arm64", EngineName.VLLM, "built for amd64, the host is arm64"),
        ("cann", "amd64", EngineName.VLLM, "no official image of vllm for cann"),
        ("cpu", "amd64", EngineName.TRANSFORMERS, "no official image of transformers for cpu"),
    ],
)
def test_the_image_of_other_hardware_is_never_taken_instead(
    kind: str, architecture: str, engine: EngineName, why: str
) -> None:
    with pytest.raises(Failure, match=why) as caught:
        chosen(kind, architecture, engine)
    assert caught.value.cause is Cause.NO_IMAGE


@pytest.mark.parametrize(
    ("known", "pinned"),
    [
        ({"digest": DIGEST, "identity": "sha256:1"}, f"own.io:5000/vllm@{DIGEST}"),
        ({"digest": "", "identity": "sha256:1"}, "sha256:1"),
        ({"digest": ""}, "own.io:5000/vllm:v1"),
    ],
    ids=str,
)
def test_what_is_executed_is_pinned_as_well_as_is_known(known: dict[str, str], pinned: str) -> None:
    assert an_image(reference="own.io:5000/vllm:v1", **known).pinned == pinned
