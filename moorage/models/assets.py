"""What a spec needs from elsewhere: the model, its LoRA adapters, its draft model."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from moorage.common.values import Value
from moorage.spec import AdapterSpec, EngineName, ModelSpec

DRAFT_NAME = "draft"


class AssetRole(StrEnum):
    """What something that is downloaded is to the model that is served."""

    MODEL = "model"
    ADAPTER = "adapter"
    DRAFT = "draft"


class Asked(Protocol):
    """Whoever names a source: a spec, or one of its assets."""

    @property
    def source(self) -> str:
        """`hf://org/repo` or `file://directory`."""

    @property
    def revision(self) -> str | None:
        """Branch, tag or commit; None = the default branch."""

    @property
    def trust_remote_code(self) -> bool:
        """Whether Python code that comes with it may run."""


class Asset(Value):
    """Something that has to be on the host.

    Attributes:
        role: What it is to the model.
        name: Name of the model or adapter; `draft` for the draft model.
        source: As in the spec.
        revision: As in the spec.
        trust_remote_code: Whether Python code that comes with it may run.
        rank: Rank that the spec states for an adapter.
        anything: Whether a directory without a configuration will do: a custom engine may know it.
    """

    role: AssetRole
    name: str
    source: str
    revision: str | None = None
    trust_remote_code: bool = False
    rank: int | None = None
    anything: bool = False

    @property
    def step(self) -> str:
        """What distinguishes its steps from those of the model; empty for the model itself."""
        return "" if self.role == AssetRole.MODEL else f" {self.name}"


class Pin(Value):
    """What a companion of the model was pinned to.

    Attributes:
        role: What it is to the model.
        name: Name of the adapter; `draft` for the draft model.
        source: As in the spec.
        revision: Commit on the hub, or the fingerprint of a local directory.
        rank: Largest rank of an adapter; None = unknown, or no adapter.
    """

    role: AssetRole
    name: str
    source: str
    revision: str
    rank: int | None = None


def assets_of(spec: ModelSpec) -> tuple[Asset, ...]:
    """Everything that a spec names: the model first, then its adapters, then the draft model."""
    model = Asset(
        role=AssetRole.MODEL,
        name=spec.name,
        source=spec.source,
        revision=spec.revision,
        trust_remote_code=spec.trust_remote_code,
        anything=spec.engine.stated_name == EngineName.CUSTOM,
    )
    return (model, *map(adapter_asset, spec.lora), *_draft(spec))


def adapter_asset(adapter: AdapterSpec) -> Asset:
    """An adapter as it is asked for."""
    return Asset(
        role=AssetRole.ADAPTER,
        name=adapter.name,
        source=adapter.source,
        revision=adapter.revision,
        rank=adapter.rank,
    )


def _draft(spec: ModelSpec) -> tuple[Asset, ...]:
    wish = spec.speculative
    if wish is None or wish.model is None:
        return ()
    draft = Asset(
        role=AssetRole.DRAFT,
        name=DRAFT_NAME,
        source=wish.model,
        revision=wish.revision,
        trust_remote_code=spec.trust_remote_code,
    )
    return (draft,)
