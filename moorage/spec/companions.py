"""What is served with a model: LoRA adapters, and the drafts of speculative decoding."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, model_validator

from moorage.common.values import InputValue
from moorage.spec.patterns import FilesPattern, Name, Revision, Source


class AdapterSpec(InputValue):
    """A LoRA adapter that is served with the model."""

    name: Name = Field(description="Name under which the adapter is served.")
    source: Source = Field(
        description="Where the adapter comes from: `hf://org/repo`, `s3://...` or `file://...`, as"
        " for the model. It has `adapter_config.json` and `adapter_model.safetensors`, or is one"
        " GGUF file for llama.cpp.",
    )
    revision: Revision | None = Field(
        None,
        description="Branch, tag or commit of the adapter on the hub; pinned to a commit when"
        " deployed. Empty = the default branch.",
    )
    rank: int | None = Field(
        None,
        ge=1,
        description="Rank to reserve memory for; it is rounded up to one that the engine takes."
        " Empty = the adapter's own, which is also the smallest allowed.",
    )
    files: FilesPattern | None = Field(
        None,
        description="Pattern of the GGUF file to use. Empty = the adapter as PEFT saves it, else"
        " the only GGUF file.",
    )


class AdapterUpdatesSpec(InputValue):
    """Room for LoRA adapters that are loaded while the model serves."""

    max: int = Field(
        4,
        ge=1,
        le=64,
        description="Adapters that may be loaded at once, in addition to those of `lora`; the"
        " engine reserves memory for all of them when it starts.",
    )
    rank: int = Field(
        16,
        ge=1,
        le=512,
        description="Largest rank that such an adapter may have; it is rounded up to one that the"
        " engine takes.",
    )


class DraftMethod(StrEnum):
    """How speculative decoding makes its drafts."""

    EAGLE3 = "eagle3"
    MTP = "mtp"
    NGRAM = "ngram"
    DRAFT_MODEL = "draft_model"


class SpeculativeSpec(InputValue):
    """Speculative decoding: a cheap draft of several tokens is checked in one step."""

    method: DraftMethod = Field(
        description="How drafts are made: `ngram` looks them up in the prompt, `mtp` uses layers of"
        " the model itself, `eagle3` and `draft_model` a model of their own."
    )
    tokens: int | None = Field(
        None, ge=1, le=64, description="Tokens of a draft. Only `mtp` does not require it."
    )
    ngram_min: int | None = Field(
        None, ge=1, description="Fewest tokens that must match in the prompt (`ngram`)."
    )
    ngram_max: int | None = Field(
        None, ge=1, description="Most tokens that are matched in the prompt (`ngram`)."
    )
    model: Source | None = Field(
        None,
        description="The draft model: `hf://org/repo`, `s3://...` or `file://...`, as for the"
        " model.",
    )
    revision: Revision | None = Field(
        None,
        description="Branch, tag or commit of the draft model on the hub; pinned to a commit when"
        " deployed. Empty = the default branch.",
    )
    files: FilesPattern | None = Field(
        None, description="Pattern of the draft model's weight files, as `files` of the model."
    )

    min_acceptance: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Least probability with which a drafted token is proposed (llama.cpp).",
    )

    @model_validator(mode="after")
    def _check_fields(self) -> SpeculativeSpec:
        if self.method != DraftMethod.MTP and not self.tokens:
            raise ValueError(f"{self.method} needs `tokens`")
        if self.method in (DraftMethod.EAGLE3, DraftMethod.DRAFT_MODEL) and not self.model:
            raise ValueError(f"{self.method} needs `model`")
        if self.ngram_min and self.ngram_max and self.ngram_min > self.ngram_max:
            raise ValueError(f"`ngram_min` {self.ngram_min} is more than `ngram_max`")
        for field in ("revision", "files"):
            if getattr(self, field) and not self.model:
                raise ValueError(f"`{field}` is of the draft model, and there is no `model`")
        return self
