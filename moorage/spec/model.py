"""The spec of one model."""

from __future__ import annotations

import hashlib
import json
import re
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, model_validator

from moorage.common.values import InputValue
from moorage.spec.companions import AdapterSpec, AdapterUpdatesSpec, SpeculativeSpec
from moorage.spec.engine import EngineSpec
from moorage.spec.engine_names import RuntimeName
from moorage.spec.keep_alive import NEVER, KeepAlive
from moorage.spec.lifecycle import RedeploySpec, ReplaceSpec, RestartSpec, StoppingSpec
from moorage.spec.patterns import (
    AUTO_FILES,
    MISTRAL_FILES,
    FilesPattern,
    Name,
    Port,
    Revision,
    SecretName,
    SecretVariable,
    Source,
)
from moorage.spec.placement import ExtendedCacheSpec, MemorySpec, PlacementSpec
from moorage.spec.ray_cluster import check_on_cluster
from moorage.spec.readiness import ReadinessSpec
from moorage.spec.routing import Routing
from moorage.spec.schedule import ScheduleSpec


class Mode(StrEnum):
    """What a model is served for."""

    AUTO = "auto"
    COMPLETION = "completion"
    EMBEDDING = "embedding"
    RERANKING = "reranking"
    CLASSIFICATION = "classification"
    TRANSCRIPTION = "transcription"
    IMAGE_GENERATION = "image-generation"


OPERATION_FIELDS = (
    *("keep_alive", "labels", "redeploy", "replace", "restart"),
    *("routing", "schedule", "timeout_seconds"),
)
"""Fields that do not change running workloads: a new value does not need a new release."""


class ModelSpec(InputValue):
    """One model, as it is meant to be served."""

    name: Name = Field(
        description="Name under which the model is served and under which its releases are kept."
    )
    source: Source = Field(
        description="Where the model comes from: `hf://org/repo`, `s3://bucket/prefix` or"
        " `file://directory`. In a file, a relative directory starts at that file; elsewhere it"
        " must be absolute.",
    )
    revision: Revision | None = Field(
        None,
        description="Branch, tag or commit on the hub; pinned to a commit when deployed. Empty ="
        " the default branch. Of a bucket: the digest of its listing; empty = what is there.",
    )
    files: FilesPattern | None = Field(
        None,
        description="Pattern of the weight files that are taken, such as `*Q4_K_M*` where a source"
        " has a model in several quantizations; `auto` takes the largest that fits. Empty = all"
        " files of the format that engines prefer.",
    )
    engine: EngineSpec = Field(
        EngineSpec.defaults(),
        description="Which engine, and how it is started. `engine: vllm` is short for"
        " `engine: {name: vllm}`.",
    )
    context: Literal["auto"] | Annotated[int, Field(ge=1)] = Field(
        "auto",
        description="Longest context in tokens, prompt and answer together. `auto` takes what the"
        " model was made for.",
    )
    concurrency: Literal["auto"] | Annotated[int, Field(ge=1)] = Field(
        "auto",
        description="Requests of the full context that the KV cache holds at once. `auto` is 1, or"
        " as many as make 32768 tokens.",
    )
    placement: PlacementSpec = Field(
        PlacementSpec.defaults(), description="Where the model may run."
    )
    memory: MemorySpec = Field(
        MemorySpec.defaults(), description="Accelerator memory that is stated, not estimated."
    )
    speculative: SpeculativeSpec | None = Field(
        None, description="Speculative decoding (vLLM, llama.cpp)."
    )
    lora: tuple[AdapterSpec, ...] = Field(
        (), max_length=64, description="LoRA adapters that are loaded at the start."
    )
    lora_updates: AdapterUpdatesSpec | None = Field(
        None,
        description="Lets LoRA adapters be loaded and unloaded while the model serves, with"
        " `moorage lora` (vLLM, SGLang). Off by default: where they are on, the engine has"
        " endpoints through which whoever may ask the model may also change what it serves.",
    )
    extended_kv_cache: ExtendedCacheSpec | None = Field(
        None, description="A second KV cache in RAM (vLLM on `cuda` and `rocm`)."
    )
    replicas: int = Field(1, ge=1, le=256, description="How many copies of the model are served.")
    mode: Mode = Field(
        Mode.AUTO,
        description="Kind of requests that the model serves. `auto` reads it from the model.",
    )
    port: Literal["auto"] | Port = Field(
        "auto",
        description="Port on the host. `auto` takes a free one from the host's range; a fixed one"
        " allows one replica per host.",
    )
    readiness: ReadinessSpec = Field(
        ReadinessSpec.defaults(), description="When the model counts as deployed."
    )
    stopping: StoppingSpec = Field(
        StoppingSpec.defaults(), description="How a serving model is stopped."
    )
    restart: RestartSpec = Field(
        RestartSpec.defaults(), description="What happens when the engine of a serving model dies."
    )
    replace: ReplaceSpec = Field(
        ReplaceSpec.defaults(), description="How a new release takes over from the serving one."
    )
    keep_alive: KeepAlive = Field(
        NEVER,
        description="How long the model stays loaded without a request through the gateway, such"
        " as `5m` or `1h30m`. Then it sleeps: it holds no memory, and the next request wakes it."
        " `0` = it sleeps as soon as its last request has ended, `never` (or a negative time) = it"
        " always stays loaded.",
    )
    sleep_level: Literal[0, 1, 2] = Field(
        0,
        description="How the model sleeps: 0 = its engine stops. vLLM on `cuda` and `rocm` can"
        " keep running instead, and wakes in seconds: 1 = it keeps the weights in RAM, which stays"
        " claimed, 2 = it reads them again. The host's `bind` must be 127.0.0.1.",
    )
    routing: Routing = Field(
        Routing.LEAST_REQUEST,
        description="How the gateway chooses among replicas. `least-request` takes the replica"
        " with the fewest requests in flight. `prefix-aware` sends prompts that begin alike, such"
        " as the turns of a conversation, to the replica that has their beginning in its cache,"
        " unless it has 25 % more requests in flight than the others on average.",
    )
    schedule: ScheduleSpec | None = Field(
        None, description="When the model wakes and sleeps by the clock."
    )
    timeout_seconds: int = Field(
        0,
        ge=0,
        le=86_400,
        description="Longest time for a whole answer through the gateway, streams included. A"
        " longer answer is cut off, or becomes 504 if nothing was sent yet. 0 = no limit.",
    )
    labels: dict[Name, Annotated[str, Field(max_length=63)]] = Field(
        {},
        max_length=64,
        description='Labels that select models, for example for a redeployment: `{"tier":'
        ' "batch"}`. They do not change what runs.',
    )
    redeploy: RedeploySpec = Field(
        RedeploySpec.defaults(),
        description="When the model is redeployed automatically, and whether a person has to"
        " approve.",
    )
    secrets: dict[SecretVariable, SecretName] = Field(
        {},
        description='Secrets by name, such as `{"HF_TOKEN": "TEAM_HF_TOKEN"}`: environment variable'
        " of the engine -> name of the secret (an environment variable of the process that starts"
        " the engine, or a Prefect Secret block `team-hf-token`)."
        " `HF_TOKEN` and `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN` are used"
        " for the download too.",
    )
    trust_remote_code: bool = Field(
        False, description="Run Python code that comes with the model. Off unless you trust it."
    )

    @model_validator(mode="after")
    def _check_fields(self) -> ModelSpec:
        names = [self.name, *(adapter.name for adapter in self.lora)]
        if len(set(names)) < len(names):
            raise ValueError("lora: each adapter needs a name of its own, other than the model's")
        key = self.engine.api_key_variable
        if key and key not in self.secrets:
            raise ValueError(f"engine.api_key_variable: `secrets` has no {key}")
        if self.placement.cluster:
            check_on_cluster(self.model_dump(mode="json", exclude_defaults=True))
        elif self.engine.application:
            raise ValueError(
                "engine.application: it is for a Ray cluster; name one in `placement.cluster`"
            )
        elif self.engine.runtime == RuntimeName.RAY:
            raise ValueError(
                "engine.runtime: a model runs on Ray where `placement.cluster` names a cluster"
            )
        return self

    @property
    def digest(self) -> str:
        """Short fingerprint of the fields that determine the workloads.

        Defaults are left out, so that a field added later does not change every digest; so are
        `OPERATION_FIELDS`.
        """
        content = self.model_dump(mode="json", exclude_defaults=True, exclude=set(OPERATION_FIELDS))
        written = json.dumps(content, sort_keys=True)
        return hashlib.sha256(written.encode()).hexdigest()[:12]

    @property
    def weight_files(self) -> str | None:
        """Pattern of the weight files to download; None = all of the format engines prefer."""
        if self.files not in (None, AUTO_FILES):
            return self.files
        own_layout = self.engine.arguments.value("--load-format") == "mistral"
        return MISTRAL_FILES if own_layout else None

    @property
    def as_it_runs(self) -> ModelSpec:
        """The spec with defaults in `OPERATION_FIELDS`, which do not change the workloads."""
        return self.model_copy(
            update={field: type(self).model_fields[field].default for field in OPERATION_FIELDS}
        )


def slug(name: str) -> str:
    """A name in lower case, digits and dashes, the form of Prefect's artifact keys."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
