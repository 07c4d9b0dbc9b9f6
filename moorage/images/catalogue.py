"""Official images of the engines, as data: engine, accelerator type, runtime, CPU architecture."""

from __future__ import annotations

from moorage.inventory.catalogue import CatalogueRow
from moorage.spec import EngineName


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
