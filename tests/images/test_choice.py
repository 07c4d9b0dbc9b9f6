"""The image table: engine x accelerator x driver x version -> image, or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.common.refusal import Refusal
from moorage.common.values import Origin
from moorage.images.catalogue import CATALOGUE, runner_rows
from moorage.images.choice import ImageQuestion, choose_image, resolve_image
from moorage.images.image import Image
from moorage.inventory.fleet_engines import CatalogueRow, EngineVersion, EngineVersions
from moorage.spec import EngineName


def resolved(catalogue: tuple[CatalogueRow, ...] = CATALOGUE, **wish: Any) -> Image:
    answer = resolve_image(_question(wish), catalogue)
    assert isinstance(answer, Image), answer
    return answer


def refused(catalogue: tuple[CatalogueRow, ...] = CATALOGUE, **wish: Any) -> str:
    answer = resolve_image(_question(wish), catalogue)
    assert isinstance(answer, Refusal), answer
    return answer.note


def _question(wish: dict[str, Any]) -> ImageQuestion:
    usual = {"engine": EngineName.VLLM, "kind": "cuda", "default_version": "0.32.0"}
    return ImageQuestion.model_validate({**usual, **wish})


OFFICIAL = [
    # kind, architecture, the host's runtime, stated version -> image, whether it is newer
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
    answer = resolved(kind=kind, architecture=cpu, runtime=host, version=version)
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
    assert reached == {row for row in CATALOGUE if row.engine == EngineName.VLLM}


@pytest.mark.parametrize(
    ("kind", "image"),
    [
        ("cpu", "ghcr.io/ggml-org/llama.cpp:server-b11549"),
        ("cuda", "ghcr.io/ggml-org/llama.cpp:server-cuda-b11549"),
        ("rocm", "ghcr.io/ggml-org/llama.cpp:server-rocm-b11549"),
        ("musa", "ghcr.io/ggml-org/llama.cpp:server-musa-b11549"),
    ],
)
def test_llama_cpp_has_an_image_for_each_type(kind: str, image: str) -> None:
    question = ImageQuestion(engine=EngineName.LLAMA_CPP, kind=kind, default_version="11549")
    answer = choose_image(question)
    assert (answer.reference, answer.engine_version) == (image, "11549")


@pytest.mark.parametrize(
    ("host", "version", "cuda"),
    [
        ("12.9", "25.07", ""),
        ("12.8", "25.03", ""),
        ("12.8", "25.07", "12.9"),
        ("", "24.04", "12.4"),
    ],
)
def test_triton_has_images_for_older_drivers(host: str, version: str, cuda: str) -> None:
    image = resolved(engine=EngineName.TRITON, runtime=host, version=version)
    assert image.reference == f"nvcr.io/nvidia/tritonserver:{version}-vllm-python-py3"
    assert (image.newer_runtime, f"built for CUDA {cuda}" in image.reason) == (
        bool(host and cuda),
        bool(cuda),
    )


@pytest.mark.parametrize(
    ("runtime", "version", "advice"),
    [
        ("12.8", "", ": update its driver, or ask for an `engine.version` older than 25.08"),
        ("12.8", "25.08", ": update its driver, or ask for an `engine.version` older than 25.08"),
        ("11.8", "", "the host runs CUDA 11.8: update its driver"),
        ("11.8", "24.12", "the host runs CUDA 11.8: update its driver"),
    ],
)
def test_an_older_version_is_advised_where_its_image_suits_the_driver(
    runtime: str, version: str, advice: str
) -> None:
    asked: dict[str, Any] = {"engine": EngineName.TRITON, "default_version": "26.07"}
    assert refused(runtime=runtime, version=version, **asked).endswith(advice)


@pytest.mark.parametrize(
    ("family", "host", "version", "image"),
    [
        ("7.0", "13.0", "0.19.1", "vllm/vllm-openai:v0.19.1"),
        ("7.0", "13.0", "0.8.5", "vllm/vllm-openai:v0.8.5"),
        ("7.5", "13.0", "", "vllm/vllm-openai:v0.32.0"),
        ("7.5", "12.9", "", "vllm/vllm-openai:v0.32.0-cu129"),
        ("12.1", "13.0", "", "vllm/vllm-openai:v0.32.0"),
        ("Hopper", "13.0", "", "vllm/vllm-openai:v0.32.0"),
    ],
)
def test_the_image_has_programs_for_the_compute_capability(
    family: str, host: str, version: str, image: str
) -> None:
    assert resolved(family=family, runtime=host, version=version).reference == image


VOLTA = "have programs for compute capability 7.5 and newer, the host's accelerators have 7.0: "


@pytest.mark.parametrize(
    ("wish", "reason"),
    [
        ({"runtime": "13.0"}, f"{VOLTA}ask for an `engine.version` older than 0.20.0"),
        ({"runtime": "12.9"}, f"{VOLTA}ask for an `engine.version` older than 0.20.0"),
        ({"runtime": "11.8"}, f"{VOLTA}ask for an `engine.version` older than 0.9.0"),
        ({"family": "6.1"}, "have 6.1: set `engine.image` to one that has"),
        (
            {"engine": EngineName.TRITON, "default_version": "26.07"},
            f"{VOLTA}ask for an `engine.version` older than 25.01",
        ),
        (
            {"engine": EngineName.SGLANG, "default_version": "0.5.23"},
            f"{VOLTA}set `engine.image` to one that has",
        ),
    ],
    ids=str,
)
def test_a_chip_that_is_too_old_is_refused_and_an_older_version_is_advised(
    wish: dict[str, Any], reason: str
) -> None:
    assert refused(**{"family": "7.0", **wish}).endswith(reason)


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
    reason = resolved(runtime=host).reason
    assert reason.startswith("vllm's official image for cuda")
    assert words in reason


def test_what_the_user_wrote_wins_over_everything() -> None:
    versions = EngineVersions(versions={"1.2": EngineVersion(image="acme/engine:7")})
    answer = resolved(image="own/vllm:7", version="1.2", versions=versions, kind="cann")
    assert (answer.reference, answer.engine_version) == ("own/vllm:7", "1.2")
    assert answer.origin == Origin.USER


CONFIGURED = {
    "1.0": EngineVersion(image="acme/engine:1"),
    "2.10": EngineVersion(image="acme/engine:2.10"),
    "2.9": EngineVersion(image="acme/engine:2.9"),
    "0.30.1": EngineVersion(),
}


@pytest.mark.parametrize(
    ("requests_for", "more", "image", "version"),
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
    requests_for: str, more: dict[str, Any], image: str, version: str
) -> None:
    default = more.pop("default_version", None)
    versions = EngineVersions(versions=CONFIGURED, default_version=default)
    answer = resolved(version=requests_for, versions=versions, **more)
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
    assert resolved(RUNNER, architecture=cpu, **wish).reference == f"gpustack/runner:{image}"


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
    answer = resolved(RUNNER, kind="cann", family="Ascend1234", architecture="arm64")
    assert "Ascend 910b (the default; the chip Ascend1234 is not known)" in answer.reason


DIGEST = f"sha256:{'0' * 64}"


def chosen(kind: str, architecture: str = "amd64", **wish: Any) -> Image:
    return choose_image(_question({"kind": kind, "architecture": architecture, **wish}))


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
    image = chosen("cuda", versions=OWN, default_version="0.30.1", **wish)
    assert (image.reference, image.engine_version) == (reference, version)


def test_the_default_version_of_a_fleet_needs_no_image_of_its_own() -> None:
    older = EngineVersions(default_version="0.31.0")
    image = chosen("cuda", versions=older, default_version="0.31.0")
    assert (image.reference, image.engine_version) == ("vllm/vllm-openai:v0.31.0", "0.31.0")


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("vllm/vllm-openai:v0.30.0", "0.30.0"),
        ("mirror.io:5000/hub/vllm/vllm-openai:v0.32.0-cu129", "0.32.0"),
        ("vllm/vllm-openai:v0.26.0-x86_64", "0.26.0"),
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
        wish = {"kind": "rocm", "architecture": architecture, "runtime": "6.4"}
        return choose_image(_question(wish), MORE).reference

    assert reference("amd64") == "vllm/vllm-openai-rocm:v0.32.0"
    assert reference("arm64") == "gpustack/runner:rocm6.4-vllm0.15.1"


def test_a_refusal_says_what_stands_in_the_way_of_all_of_them() -> None:
    question = _question({"kind": "rocm", "architecture": "arm64", "runtime": "5.0"})
    why = "built for amd64, the host is arm64; .* built for ROCM 6.4, the host runs ROCM 5.0"
    with pytest.raises(Failure, match=why):
        choose_image(question, MORE)


@pytest.mark.parametrize(
    ("kind", "engine", "more", "hint"),
    [
        ("cann", EngineName.VLLM, (), True),
        ("rocm", EngineName.SGLANG, (), True),
        ("musa", EngineName.VLLM, MORE, False),
        ("cuda", EngineName.TRANSFORMERS, (), False),
        ("cpu", EngineName.SGLANG, (), False),
    ],
)
def test_images_that_another_package_may_have_are_named(
    kind: str, engine: EngineName, more: Sequence[CatalogueRow], hint: bool
) -> None:
    with pytest.raises(Failure) as caught:
        choose_image(_question({"kind": kind, "engine": engine}), more)
    assert ("pip install '.[runners]'" in caught.value.detail) is hint


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
        chosen(kind, architecture, engine=engine)
    assert caught.value.cause is Cause.NO_IMAGE


def test_sglang_has_an_official_image_for_cuda() -> None:
    answer = resolved(engine=EngineName.SGLANG, runtime="13.0", default_version="0.5.23")

    assert answer.reference == "lmsysorg/sglang:v0.5.23"
    assert answer.engine_version == "0.5.23"


def test_sglang_has_no_image_without_cuda() -> None:
    note = refused(engine=EngineName.SGLANG, kind="cpu", default_version="0.5.23")

    assert note == "no official image of sglang for cpu is known"
