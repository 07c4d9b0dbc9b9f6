"""What the catalogue says of chips, and of the versions in tags of official images."""

from __future__ import annotations

import pytest

from moorage.images.catalogue import CATALOGUE, cann_variant, tagged_version
from moorage.inventory.fleet_engines import CatalogueRow
from moorage.spec import EngineName

DIGEST = f"sha256:{'0' * 64}"


@pytest.mark.parametrize(
    ("family", "variant", "known"),
    [
        ("Ascend910A", "910", True),
        ("Ascend910B", "910", True),
        ("Ascend910B1", "910b", True),
        ("Ascend910B4-1", "910b", True),
        ("ascend910b3", "910b", True),
        ("Ascend310P3", "310p", True),
        ("Ascend310B1", "310b", True),
        ("Ascend910_9391", "a3", True),
        ("Ascend950PR", "950", True),
        ("Ascend1234", "910b", False),
        ("", "910b", False),
    ],
)
def test_the_variant_of_an_image_follows_from_the_chip(
    family: str, variant: str, known: bool
) -> None:
    assert cann_variant(family) == (variant, known)


@pytest.mark.parametrize("prefix", ["", "mirror.io:5000/hub/"])
@pytest.mark.parametrize("row", CATALOGUE, ids=lambda row: f"{row.template} {row.since}")
def test_the_tag_of_each_official_image_tells_the_version_also_behind_a_mirror(
    row: CatalogueRow, prefix: str
) -> None:
    usual = {EngineName.LLAMA_CPP: "11549", EngineName.VLLM: "0.8.5"}
    version = row.since or usual[row.engine]
    assert tagged_version(f"{prefix}{row.reference(version)}", row.engine) == version
    digested = f"{prefix}{row.reference(version)}@{DIGEST}"
    assert tagged_version(digested, row.engine) == version


@pytest.mark.parametrize(
    ("reference", "engine", "version"),
    [
        ("gpustack/runner:rocm6.4-sglang0.5.6.post2", EngineName.SGLANG, "0.5.6.post2"),
        ("lmsysorg/sglang:v0.5.23-cu130", EngineName.SGLANG, "0.5.23"),
        ("lmsysorg/sglang:v0.5.23-ours", EngineName.SGLANG, ""),
        ("ghcr.io/ggml-org/llama.cpp:server-vulkan-b6301", EngineName.LLAMA_CPP, "6301"),
        ("ghcr.io/ggml-org/llama.cpp:server", EngineName.LLAMA_CPP, ""),
    ],
)
def test_the_tags_of_other_engines_tell_their_versions(
    reference: str, engine: EngineName, version: str
) -> None:
    assert tagged_version(reference, engine) == version
