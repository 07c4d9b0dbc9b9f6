"""Official images of the engines, as data: engine, accelerator type, CPU architecture."""

from __future__ import annotations

from moorage.spec import EngineName
from moorage.values import Value


class CatalogueRow(Value):
    """Where an engine publishes its image for one kind of hardware.

    Attributes:
        engine: The engine.
        accelerator_type: `cuda`, `rocm`, ... or `cpu`.
        architectures: CPU architectures that the image is built for.
        template: Reference with `{version}`.
    """

    engine: EngineName
    accelerator_type: str
    architectures: tuple[str, ...]
    template: str


CATALOGUE: tuple[CatalogueRow, ...] = (
    CatalogueRow(
        engine=EngineName.VLLM,
        accelerator_type="cuda",
        architectures=("amd64", "arm64"),
        template="vllm/vllm-openai:v{version}",
    ),
    CatalogueRow(
        engine=EngineName.VLLM,
        accelerator_type="rocm",
        architectures=("amd64",),
        template="vllm/vllm-openai-rocm:v{version}",
    ),
    CatalogueRow(
        engine=EngineName.VLLM,
        accelerator_type="cpu",
        architectures=("amd64", "arm64"),
        template="vllm/vllm-openai-cpu:v{version}",
    ),
)
