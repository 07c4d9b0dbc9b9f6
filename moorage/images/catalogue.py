"""Official images of the engines as data: their versions, runtimes and variants."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cache
from typing import Any

from moorage.common.versions import at_least, major, version_key
from moorage.inventory.fleet_engines import CatalogueRow
from moorage.spec import EngineName, EngineSpec
from moorage.spec.image_reference import parse_reference

VOLTA, TURING = "7.0", "7.5"
"""Compute capabilities of NVIDIA's chips. CUDA 13 compiles for none before Turing, and so does
PyTorch from 2.11 on for CUDA 12.8 and newer (PyTorch issue 172352)."""

KINDS = {"dtk": "dcu"}
"""Moorage's names of accelerator types that gpustack-runner names differently."""


def runner_rows(records: Iterable[Mapping[str, Any]]) -> tuple[CatalogueRow, ...]:
    """Rows from records of gpustack-runner; services that are not engines are left out.

    Args:
        records: With the keys `backend` (accelerator type), `backend_version` (its runtime),
            `backend_variant`, `service` (the engine), `service_version`, `platform`
            (`linux/amd64`), `docker_image` and `deprecated`.
    """
    engines = {name.value: name for name in EngineName}
    return tuple(
        CatalogueRow(
            engine=engines[record["service"]],
            accelerator_type=KINDS.get(record["backend"], record["backend"]),
            architectures=(record["platform"].rpartition("/")[2],),
            template=record["docker_image"],
            publisher="an image of GPUStack's runner catalogue",
            runtime=record["backend_version"],
            variant=record.get("backend_variant") or "",
            # `CUDA_ARCHS` in its Dockerfiles, whatever the version of CUDA.
            capability=TURING if record["backend"] == "cuda" else "",
            since=record["service_version"],
            deprecated=bool(record.get("deprecated")),
        )
        for record in records
        if record["service"] in engines
    )


TRITON_RELEASES = {
    "26.08": ("0.27.1", "13.4"),
    "26.07": ("0.24.0", "13.3"),
    "26.06": ("0.22.1", "13.3"),
    "26.05": ("0.19.0", "13.2"),
    "26.04": ("0.19.0", "13.2"),
    "26.03": ("0.17.1", "13.2"),
    "26.02": ("0.15.1", "13.1"),
    "26.01": ("0.13.0", "13.1"),
    "25.12": ("0.11.1", "13.1"),
    "25.11": ("0.11.0", "13.0"),
    "25.10": ("0.10.2", "13.0"),
    "25.09": ("0.10.1.1", "13.0"),
    "25.08": ("0.9.2", "13.0"),
    "25.07": ("0.9.0rc1", "12.9"),
    "25.06": ("0.9.0rc1", "12.9"),
    "25.05": ("0.8.4", "12.9"),
    "25.04": ("0.8.1", "12.9"),
    "25.03": ("0.7.3", "12.8"),
    "25.02": ("0.7.0", "12.8"),
    "25.01": ("0.6.3.post1", "12.8"),
    "24.12": ("0.5.5", "12.6"),
    "24.11": ("0.5.5", "12.6"),
    "24.10": ("0.5.5", "12.6"),
    "24.09": ("0.5.3.post1", "12.6"),
    "24.08": ("0.5.0.post1", "12.6"),
    "24.07": ("0.5.0.post1", "12.5"),
    "24.06": ("0.4.3", "12.5"),
    "24.05": ("0.4.0.post1", "12.4"),
    "24.04": ("0.4.0.post1", "12.4"),
}
"""The versions of vLLM and CUDA in Triton's releases, the newest first; older ones are not listed.

Source: `docs/introduction/compatibility.md` of the Triton server, container `vllm-python-py3`.
"""


def vllm_of(release: str) -> str:
    """The version of vLLM in a release of Triton; empty = unknown."""
    return TRITON_RELEASES.get(release, ("", ""))[0]


def _vllm(
    kind: str,
    architectures: tuple[str, ...],
    template: str,
    runtime: str = "",
    since: str = "",
    before: str = "",
) -> CatalogueRow:
    # vLLM 0.20.0 is the first with PyTorch 2.11.
    newer = at_least(since, "0.20.0") or at_least(runtime, "13.0")
    return CatalogueRow(
        engine=EngineName.VLLM,
        accelerator_type=kind,
        architectures=architectures,
        template=template,
        publisher=f"vllm's official image for {kind}",
        runtime=runtime,
        capability=(TURING if newer else VOLTA) if kind == "cuda" else "",
        since=since,
        before=before,
    )


def _llama(kind: str, architectures: tuple[str, ...], tag: str) -> CatalogueRow:
    return CatalogueRow(
        engine=EngineName.LLAMA_CPP,
        accelerator_type=kind,
        architectures=architectures,
        template=f"ghcr.io/ggml-org/llama.cpp:{tag}-b{{version}}",
        publisher=f"llama.cpp's official image for {kind}",
    )


def _triton() -> Iterator[CatalogueRow]:
    """One row for each release, since their versions of CUDA differ."""
    releases = zip(TRITON_RELEASES.items(), ("", *TRITON_RELEASES), strict=False)
    for (name, (_, cuda)), after in releases:
        yield CatalogueRow(
            engine=EngineName.TRITON,
            accelerator_type="cuda",
            architectures=("amd64",),
            template="nvcr.io/nvidia/tritonserver:{version}-vllm-python-py3",
            publisher="NVIDIA's official image of Triton with vLLM for cuda",
            runtime=cuda,
            # As its release notes say; those of 24.12 still list Pascal, but vLLM does not.
            capability=TURING if at_least(name, "25.01") else VOLTA,
            since=name,
            before=after,
        )


_BOTH = ("amd64", "arm64")
_AMD64 = ("amd64",)
_CUDA = "vllm/vllm-openai:v{version}"

CATALOGUE: tuple[CatalogueRow, ...] = (
    # vLLM pull request 39878: from 0.20.0 the plain tag has CUDA 13.0; before it had 12.9.
    _vllm("cuda", _BOTH, _CUDA, runtime="13.0", since="0.20.0"),
    _vllm("cuda", _BOTH, f"{_CUDA}-cu129", runtime="12.9", since="0.20.0"),
    _vllm("cuda", _BOTH, f"{_CUDA}-cu130", runtime="13.0", since="0.19.0", before="0.20.0"),
    _vllm("cuda", _BOTH, _CUDA, runtime="12.9", since="0.12.0", before="0.20.0"),
    # vLLM issue 18813: the image of 0.9.0 requires CUDA 12.8 or newer.
    _vllm("cuda", _AMD64, _CUDA, runtime="12.8", since="0.9.0", before="0.12.0"),
    _vllm("cuda", _AMD64, _CUDA, before="0.9.0"),
    # `since`: the first versions with known public manifests in these repositories.
    _vllm("rocm", _AMD64, "vllm/vllm-openai-rocm:v{version}", since="0.14.0"),
    _vllm("cpu", _BOTH, "vllm/vllm-openai-cpu:v{version}", since="0.16.0"),
    CatalogueRow(
        engine=EngineName.SGLANG,
        accelerator_type="cuda",
        architectures=_BOTH,
        template="lmsysorg/sglang:v{version}",
        publisher="sglang's official image for cuda",
        # The wheel of 0.5.23 requires flashinfer and cutlass for CUDA 13.
        runtime="13.0",
        capability=TURING,
        since="0.5.23",
    ),
    *_triton(),
    # Tags of llama.cpp's own workflow (`.github/workflows/docker.yml`); versions are build numbers.
    _llama("cpu", _BOTH, "server"),
    _llama("cuda", _BOTH, "server-cuda"),
    _llama("rocm", _AMD64, "server-rocm"),
    _llama("musa", _AMD64, "server-musa"),
)


class Fit(StrEnum):
    """How well an image's accelerator runtime suits the host's driver."""

    FITS = "fits"
    """The driver is as new or newer: drivers also run programs for older runtimes."""

    UNKNOWN = "unknown"
    """The version of the host or of the image is unknown."""

    SAME_MAJOR = "same-major"
    """Newer than the host's, with the same major version: minor-version compatibility."""

    TOO_NEW = "too-new"
    """Newer than the host's, with another major version."""


def fit(runtime: str, host: str) -> Fit:
    """How an image's runtime suits a host's; empty = unknown."""
    if not runtime or not host:
        return Fit.UNKNOWN
    if version_key(runtime) <= version_key(host):
        return Fit.FITS
    return Fit.SAME_MAJOR if major(runtime) == major(host) else Fit.TOO_NEW


def has_programs(row: CatalogueRow, family: str) -> bool:
    """Whether a row's images have programs for a chip family, as far as both are known."""
    return not family or at_least(family, row.capability)


def pick_runtime(runtimes: Collection[str], host: str) -> tuple[str, Fit] | None:
    """The best runtime version for a host; None when none would run.

    The newest that fits; where a version is unknown, the newest of these; else the newest of the
    same major version.
    """
    for wanted in (Fit.FITS, Fit.UNKNOWN, Fit.SAME_MAJOR):
        suited = [runtime for runtime in runtimes if fit(runtime, host) is wanted]
        if suited:
            return max(suited, key=version_key), wanted
    return None


DEFAULT_VARIANT = "910b"
"""Variant for an unknown chip, as in GPUStack."""

VARIANTS = {
    "910": "PremiumA ProA A ProB B",
    "310p": "310P1 310P2 310P3 310P4 310P5 310P7",
    "910b": "910B1 910B2 910B2C 910B3 910B4 910B4-1",
    "310b": "310B1 310B2 310B3 310B4",
    "a3": "910 910_9391 910_9392 910_9381 910_9382 910_9372 910_9362 910_9363",
    "950": "910_9579 910_95 950",
}
"""Chips by variant of CANN: SoC names without `Ascend`, and without `Ascend910` for variant 910.

The names are from GPUStack's detector.
"""

_BY_CHIP = {
    f"ascend{'910' if variant == '910' else ''}{name}".lower(): variant
    for variant, names in VARIANTS.items()
    for name in names.split()
}


def cann_variant(family: str) -> tuple[str, bool]:
    """The variant of CANN for a chip, such as `Ascend910B3`, and whether the chip is known."""
    name = family.strip().lower()
    if name.startswith("ascend950"):
        return "950", True
    return _BY_CHIP.get(name, DEFAULT_VARIANT), name in _BY_CHIP


@cache
def official_registries() -> frozenset[str]:
    """Registries of the official images; empty = the runtime's default registry."""
    return frozenset(parse_reference(row.template).registry for row in CATALOGUE)


VERSION = r"(?P<version>\d+(?:\.\d+)+(?:\.?(?:a|b|rc|post|dev)\d+)*)"
BUILD = r"(?:server|full|light)(?:-[a-z0-9]+)?-b(?P<version>\d+)"
"""Tags of llama.cpp, which numbers its builds, such as `server-vulkan-b6301`."""

RUNNER = rf"(?:^|.*-){{engine}}{VERSION}"
"""Tags of GPUStack's runner images, such as `cuda12.9-vllm0.18.0`."""


BUILDS = r"(?:-(?:x86_64|aarch64|amd64|arm64|cu\d+|ubuntu\d+|runtime))*"
"""Ends of tags of further official builds of a version, such as `v0.26.0-x86_64`."""


def stated_version(engine: EngineSpec) -> str:
    """The version that a spec states, else the tag of its official image; empty = unknown."""
    return engine.version or official_version(engine)


def official_version(engine: EngineSpec) -> str:
    """The version of the official image that a spec names, as its tag says; empty = unknown.

    An image of another registry may hold another version than its tag says.
    """
    if not engine.image or parse_reference(engine.image).registry not in official_registries():
        return ""
    name = EngineName.VLLM if engine.name == EngineName.AUTO else engine.name
    return tagged_version(engine.image, name)


def tagged_version(reference: str, engine: EngineName) -> str:
    """The version in the tag of an official image or of a runner image; empty = unknown.

    An image in another registry counts as the same. Other images' tags may number anything, and an
    image's labels are often those of its base image.
    """
    parsed = parse_reference(reference)
    tagged = f"{parsed.path}:{parsed.tag}"
    patterns = [
        _tag_pattern(row) for row in CATALOGUE if row.engine == engine and not row.only_version
    ]
    if parsed.path.rpartition("/")[2] == "runner":
        patterns.append(rf"[^:]*:{RUNNER.format(engine=engine.value)}")
    found = (re.fullmatch(pattern, tagged) for pattern in patterns)
    return next((match["version"] for match in found if match), "")


def _tag_pattern(row: CatalogueRow) -> str:
    """A pattern of the repository and tag of a row's images, in any registry or folder of one."""
    official = parse_reference(row.template)
    if row.engine == EngineName.LLAMA_CPP:
        return rf"(?:.*/)?{re.escape(official.path)}:{BUILD}"
    name = re.escape(f"{official.path}:{official.tag}")
    return rf"(?:.*/)?{name.replace(re.escape('{version}'), VERSION)}{BUILDS}"
