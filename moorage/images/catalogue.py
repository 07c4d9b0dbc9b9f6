"""Official images of the engines, as data, and the engine version that a tag names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from moorage.inventory.fleet_engines import CatalogueRow
from moorage.spec import EngineName
from moorage.spec.image_reference import parse_reference

KINDS = {"dtk": "dcu"}
"""Accelerator types that have another name here."""


def runner_rows(
    records: Iterable[Mapping[str, Any]], *, kinds: Mapping[str, str] = KINDS
) -> tuple[CatalogueRow, ...]:
    """The rows that records of gpustack-runner stand for; services that are no engine are left out.

    Args:
        records: With the keys `backend` (accelerator type), `backend_version` (its runtime),
            `backend_variant`, `service` (the engine), `service_version`, `platform`
            (`linux/amd64`), `docker_image` and `deprecated`.
        kinds: What an accelerator type is called here, where it differs.
    """
    engines = {name.value: name for name in EngineName}
    return tuple(
        CatalogueRow(
            engine=engines[record["service"]],
            accelerator_type=kinds.get(record["backend"], record["backend"]),
            architectures=(record["platform"].rpartition("/")[2],),
            template=record["docker_image"],
            publisher="an image of GPUStack's runner catalogue",
            runtime=record["backend_version"],
            variant=record.get("backend_variant") or "",
            since=record["service_version"],
            deprecated=bool(record.get("deprecated")),
        )
        for record in records
        if record["service"] in engines
    )


def _vllm(
    kind: str,
    architectures: tuple[str, ...],
    template: str,
    runtime: str = "",
    since: str = "",
    before: str = "",
) -> CatalogueRow:
    return CatalogueRow(
        engine=EngineName.VLLM,
        accelerator_type=kind,
        architectures=architectures,
        template=template,
        publisher=f"vllm's official image for {kind}",
        runtime=runtime,
        since=since,
        before=before,
    )


_BOTH = ("amd64", "arm64")
_AMD64 = ("amd64",)
_CUDA = "vllm/vllm-openai:v{version}"

CATALOGUE: tuple[CatalogueRow, ...] = (
    # vLLM pull request 39878: from 0.20.0 on the plain tag is CUDA 13.0, before it was 12.9.
    _vllm("cuda", _BOTH, _CUDA, runtime="13.0", since="0.20.0"),
    _vllm("cuda", _BOTH, f"{_CUDA}-cu129", runtime="12.9", since="0.20.0"),
    _vllm("cuda", _BOTH, f"{_CUDA}-cu130", runtime="13.0", since="0.19.0", before="0.20.0"),
    _vllm("cuda", _BOTH, _CUDA, runtime="12.9", since="0.12.0", before="0.20.0"),
    # vLLM issue 18813: the image of 0.9.0 asks for CUDA 12.8 or newer.
    _vllm("cuda", _AMD64, _CUDA, runtime="12.8", since="0.9.0", before="0.12.0"),
    _vllm("cuda", _AMD64, _CUDA, before="0.9.0"),
    # The first versions of which public manifests of these repositories are known.
    _vllm("rocm", _AMD64, "vllm/vllm-openai-rocm:v{version}", since="0.14.0"),
    _vllm("cpu", _BOTH, "vllm/vllm-openai-cpu:v{version}", since="0.16.0"),
)


VERSION = r"(?P<version>\d+(?:\.\d+)+(?:\.?(?:a|b|rc|post|dev)\d+)*)"
RUNNER = rf"(?:^|.*-){{engine}}{VERSION}"
"""Tags of GPUStack's runner images, such as `cuda12.9-vllm0.18.0`."""


def tagged_version(reference: str, engine: EngineName) -> str:
    """The version in the tag of an official image or of a runner image; empty = nothing tells.

    Below another registry an image counts as the same. Other tags may number anything, and an
    image's labels are those of its base as often as its own.
    """
    parsed = parse_reference(reference)
    tagged = f"{parsed.path}:{parsed.tag}"
    patterns = [
        rf"(?:.*/)?{re.escape(row.template).replace(re.escape('{version}'), VERSION)}"
        for row in CATALOGUE
        if row.engine == engine and not row.only_version
    ]
    if parsed.path.rpartition("/")[2] == "runner":
        patterns.append(rf"[^:]*:{RUNNER.format(engine=engine.value)}")
    found = (re.fullmatch(pattern, tagged) for pattern in patterns)
    return next((match["version"] for match in found if match), "")
