"""The image table: engine x accelerator x driver x version -> image, or why there is none."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.common.values import Origin
from moorage.images.catalogue import CATALOGUE, runner_rows
from moorage.images.image import ImageAnswer, ImageQuestion, ImageRefusal
from moorage.images.resolve import cann_variant, resolve_image
from moorage.inventory.fleet_engines import CatalogueRow, EngineVersion, EngineVersions
from moorage.spec import EngineName


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


def asked(catalogue: tuple[CatalogueRow, ...] = CATALOGUE, **wish: Any) -> ImageAnswer:
    answer = resolve_image(_question(wish), catalogue)
    assert isinstance(answer, ImageAnswer), answer
    return answer


def refused(catalogue: tuple[CatalogueRow, ...] = CATALOGUE, **wish: Any) -> str:
    answer = resolve_image(_question(wish), catalogue)
    assert isinstance(answer, ImageRefusal), answer
    return answer.reason


def _question(wish: dict[str, Any]) -> ImageQuestion:
    usual = {"engine": EngineName.VLLM, "kind": "cuda", "default_version": "0.32.0"}
    return ImageQuestion.model_validate({**usual, **wish})


OFFICIAL = [
    # kind, architecture, the host's runtime, version asked for -> image, whether it is newer
    ("cuda", "amd64", "13.2", "", "vllm/vllm-openai:v0.32.0", False),
    ("cuda", "arm64", "13.0", "", "vllm/vllm-openai:v0.32.0", False),
    ("cuda", "amd64", "12.9", "", "vllm/vllm-openai:v0.32.0-cu129", False),
    ("cuda", "arm64", "12.9", "", "vllm/vllm-openai:v0.32.0-cu129", False),
    ("cuda", "amd64", "12.4", "", "vllm/vllm-openai:v0.32.0-cu129", True),
    ("cuda", "amd64", "", "", "vllm/vllm-openai:v0.32.0", False),
    ("cuda", "amd64", "13.0", "0.19.1", "vllm/vllm-openai:v0.19.1-cu130", False),
    ("cuda", "amd64", "12.9", "0.19.1", "vllm/vllm-openai:v0.19.1", False),
    ("cuda", "arm64", "13.0", "0.18.0", "vllm/vllm-openai:v0.18.0", False),
    ("cuda", "amd64", "12.8", "0.18.0", "vllm/vllm-openai:v0.18.0", True),
    ("cuda", "amd64", "12.8", "0.9.0", "vllm/vllm-openai:v0.9.0", False),
    ("cuda", "amd64", "12.6", "0.11.0", "vllm/vllm-openai:v0.11.0", True),
    ("cuda", "amd64", "11.8", "0.8.5", "vllm/vllm-openai:v0.8.5", False),
    ("rocm", "amd64", "7.0", "", "vllm/vllm-openai-rocm:v0.32.0", False),
    ("rocm", "amd64", "", "0.30.1", "vllm/vllm-openai-rocm:v0.30.1", False),
    ("cpu", "amd64", "", "", "vllm/vllm-openai-cpu:v0.32.0", False),
    ("cpu", "arm64", "", "", "vllm/vllm-openai-cpu:v0.32.0", False),
]


@pytest.mark.parametrize(("kind", "cpu", "host", "version", "image", "newer"), OFFICIAL)
def test_the_newest_runtime_that_the_driver_can_run_is_taken(
    kind: str, cpu: str, host: str, version: str, image: str, newer: bool
) -> None:
    answer = asked(kind=kind, architecture=cpu, runtime=host, version=version)
    assert (answer.reference, answer.newer_runtime) == (image, newer)
    assert answer.engine_version == (version or "0.32.0")
    assert answer.origin == Origin.DEFAULT


def test_every_official_row_is_in_that_table() -> None:
    reached = {
        row
        for row in CATALOGUE
        for kind, _, _, version, image, _ in OFFICIAL
        if row.accelerator_type == kind
        and row.has(version or "0.32.0")
        and row.reference(version or "0.32.0") == image
    }
    assert reached == set(CATALOGUE)


@pytest.mark.parametrize(
    ("wish", "reason"),
    [
        ({"runtime": "11.8"}, "for CUDA 12.9, 13.0, the host runs CUDA 11.8: update its driver"),
        ({"kind": "rocm", "architecture": "arm64"}, "is built for amd64, the host is arm64"),
        ({"architecture": "ppc64le"}, "is built for amd64, arm64, the host is ppc64le"),
        ({"kind": "cann"}, "no official image of vllm for cann is known"),
        ({"kind": "musa"}, "no official image of vllm for musa is known"),
        ({"engine": EngineName.TRANSFORMERS}, "no official image of transformers for cuda"),
        ({"kind": "rocm", "version": "0.9.0"}, "no image of vllm 0.9.0 for rocm is known"),
        ({"version": "0.9.0", "architecture": "arm64"}, "no image of vllm 0.9.0 for cuda is known"),
    ],
    ids=str,
)
def test_a_pair_that_cannot_work_is_refused_with_the_reason(
    wish: dict[str, Any], reason: str
) -> None:
    assert reason in refused(**wish)


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("13.2", "CUDA 13.0 on a host that runs 13.2"),
        ("12.4", "newer than the host's 12.4: it runs by minor-version compatibility"),
        ("", "built for CUDA 13.0, the host's version is not known"),
    ],
)
def test_the_reason_says_how_image_and_driver_suit(host: str, words: str) -> None:
    reason = asked(runtime=host).reason
    assert reason.startswith("vllm's official image for cuda")
    assert words in reason


def test_what_the_user_wrote_wins_over_everything() -> None:
    versions = EngineVersions(versions={"1.2": EngineVersion(image="acme/engine:7")})
    answer = asked(image="own/vllm:7", version="1.2", versions=versions, kind="cann")
    assert (answer.reference, answer.engine_version) == ("own/vllm:7", "1.2")
    assert answer.origin == Origin.USER


CONFIGURED = {
    "1.0": EngineVersion(image="acme/engine:1"),
    "2.10": EngineVersion(image="acme/engine:2.10"),
    "2.9": EngineVersion(image="acme/engine:2.9"),
    "0.30.1": EngineVersion(),
}


@pytest.mark.parametrize(
    ("asked_for", "more", "image", "version"),
    [
        ("1.0", {}, "acme/engine:1", "1.0"),
        ("", {"default_version": "2.9"}, "acme/engine:2.9", "2.9"),
        ("", {}, "vllm/vllm-openai:v0.32.0", "0.32.0"),
        ("0.30.1", {}, "vllm/vllm-openai:v0.30.1", "0.30.1"),
        ("3.0", {"closed": True}, "acme/engine:2.10", "3.0"),
        ("", {"closed": True}, "acme/engine:2.10", "2.10"),
    ],
)
def test_a_configured_version_comes_before_the_catalogue(
    asked_for: str, more: dict[str, Any], image: str, version: str
) -> None:
    default = more.pop("default_version", None)
    versions = EngineVersions(versions=CONFIGURED, default_version=default)
    answer = asked(version=asked_for, versions=versions, **more)
    assert (answer.reference, answer.engine_version) == (image, version)


def _runner(
    kind: str, runtime: str, version: str, variant: str = "", **more: Any
) -> dict[str, Any]:
    chip = f"-{variant}" if variant else ""
    return {
        "backend": kind,
        "backend_version": runtime,
        "backend_variant": variant,
        "service": "vllm",
        "service_version": version,
        "platform": "linux/arm64" if kind == "cann" else "linux/amd64",
        "docker_image": f"gpustack/runner:{kind}{runtime}{chip}-vllm{version}",
        "deprecated": False,
        **more,
    }


RUNNER = runner_rows(
    [
        _runner("cann", "8.5", "0.18.0", "910b"),
        _runner("cann", "8.5", "0.16.0", "910b"),
        _runner("cann", "8.5", "0.18.0", "310p"),
        _runner("cann", "8.5", "0.18.0", "a3"),
        _runner("cann", "8.3", "0.12.0", "910b"),
        _runner("cann", "8.2", "0.10.0", "910b", deprecated=True),
        _runner("rocm", "7.0", "0.21.0"),
        _runner("rocm", "6.4", "0.16.0", deprecated=True),
        _runner("dtk", "25.04", "0.11.0"),
        _runner("musa", "4.1", "0.9.2"),
        _runner("cuda", "12.8", "1.0", service="mindie"),
    ]
)


@pytest.mark.parametrize(
    ("wish", "image"),
    [
        ({"kind": "cann", "family": "Ascend910B3", "runtime": "8.5"}, "cann8.5-910b-vllm0.18.0"),
        ({"kind": "cann", "family": "Ascend310P3", "runtime": "9.0"}, "cann8.5-310p-vllm0.18.0"),
        ({"kind": "cann", "family": "Ascend910_9391"}, "cann8.5-a3-vllm0.18.0"),
        ({"kind": "cann", "family": "", "runtime": "8.4"}, "cann8.3-910b-vllm0.12.0"),
        ({"kind": "cann", "version": "0.16.0"}, "cann8.5-910b-vllm0.16.0"),
        ({"kind": "cann", "default_version": "0.16.0"}, "cann8.5-910b-vllm0.16.0"),
        ({"kind": "cann", "version": "0.10.0"}, "cann8.2-910b-vllm0.10.0"),
        ({"kind": "rocm", "runtime": "7.2"}, "rocm7.0-vllm0.21.0"),
        ({"kind": "rocm", "runtime": "6.4", "version": "0.16.0"}, "rocm6.4-vllm0.16.0"),
        ({"kind": "dcu"}, "dtk25.04-vllm0.11.0"),
        ({"kind": "musa", "runtime": "4.3"}, "musa4.1-vllm0.9.2"),
    ],
    ids=str,
)
def test_rows_of_the_runner_catalogue_are_chosen_by_the_same_rules(
    wish: dict[str, Any], image: str
) -> None:
    cpu = "arm64" if wish["kind"] == "cann" else "amd64"
    assert asked(RUNNER, architecture=cpu, **wish).reference == f"gpustack/runner:{image}"


@pytest.mark.parametrize(
    ("wish", "reason"),
    [
        ({"kind": "rocm", "runtime": "6.4"}, "built for ROCM 7.0, the host runs ROCM 6.4"),
        ({"kind": "cann", "family": "Ascend910A"}, "for cann is built for Ascend 910"),
        ({"kind": "cann", "version": "0.10.1"}, "no image of vllm 0.10.1 for cann is known"),
        ({"kind": "cuda"}, "no official image of vllm for cuda is known"),
    ],
    ids=str,
)
def test_rows_of_the_runner_catalogue_are_refused_by_the_same_rules(
    wish: dict[str, Any], reason: str
) -> None:
    cpu = "arm64" if wish["kind"] == "cann" else "amd64"
    assert reason in refused(RUNNER, architecture=cpu, **wish)


def test_a_chip_that_is_not_known_is_said() -> None:
    answer = asked(RUNNER, kind="cann", family="Ascend1234", architecture="arm64")
    assert "Ascend 910b (the default; the chip Ascend1234 is not known)" in answer.reason
