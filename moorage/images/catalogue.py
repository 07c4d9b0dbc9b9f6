"""Official images of the engines, as data: engine, accelerator type, runtime, CPU architecture."""

from __future__ import annotations

from moorage.common.values import Value
from moorage.common.versions import version_key
from moorage.spec import EngineName


class CatalogueRow(Value):
    """Where an image is published for one kind of hardware.

    Attributes:
        engine: The engine.
        accelerator_type: `cuda`, `rocm`, ... or `cpu`.
        architectures: CPU architectures that the image is built for.
        template: Reference, with `{version}` where one row stands for many versions.
        publisher: Who builds it, in words for the reason of a choice.
        runtime: Version of the accelerator runtime in the image, such as `12.9`; empty = it is not
            known, or there is none.
        variant: Chip family that it is built for, where a runtime has several.
        since: First engine version of the row, included; empty = from the beginning.
        before: First engine version that is not of the row any more; empty = none.
        deprecated: Taken only when its version is asked for.
    """

    engine: EngineName
    accelerator_type: str
    architectures: tuple[str, ...]
    template: str
    publisher: str
    runtime: str = ""
    variant: str = ""
    since: str = ""
    before: str = ""
    deprecated: bool = False

    @property
    def only_version(self) -> str:
        """The engine version of a row that stands for one image; empty = it stands for many."""
        return "" if "{version}" in self.template else self.since

    def has(self, version: str) -> bool:
        """Whether an engine version is published by this row."""
        if self.only_version:
            return version == self.only_version
        key = version_key(version)
        early = bool(self.since) and key < version_key(self.since)
        return not early and not (self.before and key >= version_key(self.before))

    def reference(self, version: str) -> str:
        """The image of an engine version."""
        return self.template.format(version=version)


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
