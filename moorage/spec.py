"""What a user writes: one `ModelSpec` per model. Its fleet is in `moorage.fleet`.

Every field has a description: it is the form in the Prefect UI and the reference in docs/spec.md.
"""

from __future__ import annotations

import hashlib
import json
import re
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import ByteSize, Field, StringConstraints, field_validator, model_validator

from moorage.arguments import user_tokens
from moorage.failures import Failure
from moorage.units import GIB, Bytes
from moorage.values import Value

NAME_PATTERN = r"^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$"
SOURCE_PATTERN = r"^(hf://[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*|file://[^\x00]+)$"
ACCELERATOR_PATTERN = r"^[^:\s]+:[a-z]+:\d+$"
KIND_PATTERN = r"^[\w* .()/-]+$"
SECRET_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
VARIABLE_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$"

VERSION_PATTERN = r"^\d[\w.+-]*$"
IMAGE_PATTERN = r"^[^\s-][^\s]*$"
PATH_PATTERN = r"^/[^\s]*$"
DIRECTORY_PATTERN = r"^file:///[^\x00:]+$"
REVISION_PATTERN = r"^[\w][\w./-]*$"

PATTERNS_IN_WORDS = {
    NAME_PATTERN: "letters, digits, '.', '_' and '-', at most 63, a letter or digit at both ends",
    SOURCE_PATTERN: "hf://org/repo or file://directory",
    ACCELERATOR_PATTERN: "host:type:index, such as gpu-1:cuda:0",
    KIND_PATTERN: "a type, a vendor or a product name, such as cuda, nvidia or *H100*",
    SECRET_PATTERN: "a name of letters, digits, '.', '_' and '-'",
    VARIABLE_PATTERN: "the name of an environment variable",
    VERSION_PATTERN: "a version such as 0.32.0",
    IMAGE_PATTERN: "an image reference such as vllm/vllm-openai:v0.32.0",
    PATH_PATTERN: "a path that starts with /",
    DIRECTORY_PATTERN: "file:// and an absolute directory",
    REVISION_PATTERN: "a branch, tag or commit",
}
"""What each pattern asks for, in the words of an error message."""

Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
AcceleratorId = Annotated[str, StringConstraints(pattern=ACCELERATOR_PATTERN)]
Kind = Annotated[str, StringConstraints(pattern=KIND_PATTERN)]
SecretName = Annotated[str, StringConstraints(pattern=SECRET_PATTERN)]
VariableName = Annotated[str, StringConstraints(pattern=VARIABLE_PATTERN)]
Port = Annotated[int, Field(ge=1, le=65535)]


class EngineName(StrEnum):
    """Inference engines. `auto` is decided from the host."""

    AUTO = "auto"
    VLLM = "vllm"
    TRANSFORMERS = "transformers"


class RuntimeName(StrEnum):
    """What starts an engine on a host."""

    AUTO = "auto"
    DOCKER = "docker"
    PROCESS = "process"


class Mode(StrEnum):
    """What a model is served for."""

    AUTO = "auto"
    COMPLETION = "completion"
    EMBEDDING = "embedding"
    RERANKING = "reranking"
    IMAGE_GENERATION = "image-generation"


class Strategy(StrEnum):
    """How hosts are chosen when several fit."""

    SPREAD = "spread"
    BINPACK = "binpack"


class Policy(StrEnum):
    """How much of an accelerator a model claims, and by which rules it is placed."""

    FITTED = "fitted"
    WHOLE = "whole"
    BASELINE = "baseline"


class EngineSpec(Value):
    """Which engine serves the model, and how it is started."""

    name: EngineName = Field(
        EngineName.AUTO,
        description="Inference engine. `auto` takes vLLM where there are accelerators that it"
        " supports, and transformers elsewhere.",
    )
    runtime: RuntimeName = Field(
        RuntimeName.AUTO,
        description="What starts the engine: a container (`docker`) or a program installed on the"
        " host (`process`). `auto` prefers a container where an image is known.",
    )
    version: str | None = Field(
        None,
        pattern=VERSION_PATTERN,
        description="Engine version, such as `0.32.0`; it selects the image. Empty takes the"
        " version that this release of moorage was tested with.",
    )
    image: str | None = Field(
        None,
        min_length=1,
        pattern=IMAGE_PATTERN,
        description="Container image to use instead of the engine's official one.",
    )
    args: tuple[str, ...] = Field(
        (),
        description="Arguments added to the engine's command line; they win over derived ones."
        " Each entry is one argument or a whole `--name value` line.",
    )
    env: dict[VariableName, str] = Field(
        {},
        description="Environment variables for the engine; they win over derived ones. Never put"
        " a secret here: use `secrets`.",
    )
    command: tuple[str, ...] | None = Field(
        None,
        min_length=1,
        description="Replaces the whole command line. `{{model_path}}`, `{{model_name}}`,"
        " `{{host}}` (where the engine listens), `{{host_ip}}` (the host's `bind`), `{{port}}`,"
        " `{{accelerator_count}}` and `{{accelerator_ids}}` are filled in, then names of `env`;"
        " any other is left as it is.",
    )
    shm: Bytes = Field(
        ByteSize(10 * GIB),
        description="Shared memory of the container, in bytes or as `10GiB`.",
    )

    @field_validator("args")
    @classmethod
    def _can_be_split(cls, args: tuple[str, ...]) -> tuple[str, ...]:
        try:
            user_tokens(args)
        except Failure as failure:
            raise ValueError(failure.detail) from failure
        return args


class DraftMethod(StrEnum):
    """How speculative decoding makes its drafts."""

    EAGLE3 = "eagle3"
    MTP = "mtp"
    NGRAM = "ngram"
    DRAFT_MODEL = "draft_model"


class SpeculativeSpec(Value):
    """Speculative decoding: drafts of several tokens are made cheaply and checked in one step."""

    method: DraftMethod = Field(
        description="How drafts are made: `ngram` looks them up in the prompt, `mtp` uses layers of"
        " the model itself, `eagle3` and `draft_model` a model of their own."
    )
    tokens: int | None = Field(
        None, ge=1, le=64, description="Tokens of a draft. Only `mtp` can do without."
    )
    ngram_min: int | None = Field(
        None, ge=1, description="Fewest tokens that must match in the prompt (`ngram`)."
    )
    ngram_max: int | None = Field(
        None, ge=1, description="Most tokens that are matched in the prompt (`ngram`)."
    )
    model: str | None = Field(
        None,
        pattern=DIRECTORY_PATTERN,
        description="The draft model: `file://` and a directory that each host has.",
    )

    @model_validator(mode="after")
    def _is_whole(self) -> SpeculativeSpec:
        if self.method != DraftMethod.MTP and not self.tokens:
            raise ValueError(f"{self.method} needs `tokens`")
        if self.method in (DraftMethod.EAGLE3, DraftMethod.DRAFT_MODEL) and not self.model:
            raise ValueError(f"{self.method} needs `model`")
        return self


class AdapterSpec(Value):
    """A LoRA adapter that is served beside the model."""

    name: Name = Field(description="Name under which the adapter is asked for.")
    source: str = Field(
        pattern=DIRECTORY_PATTERN,
        description="`file://` and a directory that each host has, with `adapter_config.json`.",
    )
    rank: int | None = Field(
        None,
        ge=1,
        description="The adapter's rank (`r`); it is rounded up to one that the engine takes."
        " Empty = the engine's default, 16.",
    )


class ExtendedCacheSpec(Value):
    """Blocks of the KV cache that leave the accelerator are kept in RAM (LMCache)."""

    ram: Bytes | None = Field(
        None, gt=0, description="RAM on each host, in bytes or as `64GiB`; it wins over `ratio`."
    )
    ratio: float = Field(
        1.2, gt=0, description="RAM as a multiple of the accelerator memory claimed on the host."
    )
    chunk: int | None = Field(None, ge=1, description="Tokens of a chunk; empty = LMCache's own.")


class PlacementSpec(Value):
    """Where the model may run."""

    accelerators: (
        Literal["auto"]
        | Annotated[int, Field(ge=0, le=1024)]
        | Annotated[tuple[AcceleratorId, ...], Field(min_length=1)]
    ) = Field(
        "auto",
        description="Accelerators of each replica: `auto`, how many (0 = run on CPU), or a list"
        " of `host:type:index`, such as `gpu-1:cuda:0`.",
    )
    accelerator_kinds: tuple[Kind, ...] = Field(
        (),
        description="Only accelerators of one of these kinds are used: a type (`cuda`), a vendor"
        " (`nvidia`), or a product name with `*` for any text (`*H100*`). Empty = any.",
    )
    policy: Policy = Field(
        Policy.FITTED,
        description="`fitted` claims what context and concurrency need, so that small models share"
        " an accelerator; `whole` claims all that is free on the accelerators it takes, for the"
        " largest cache; `baseline` follows the rules of GPUStack's vLLM scheduler.",
    )
    strategy: Strategy = Field(
        Strategy.SPREAD,
        description="`spread` prefers the emptiest host, `binpack` the fullest that still fits.",
    )
    seed: int | None = Field(
        None,
        description="Breaks ties between equal hosts. Empty = the order of the fleet.",
    )
    host_labels: dict[str, str] = Field(
        {}, description="Only hosts that carry all these labels are considered."
    )
    across_hosts: bool = Field(
        False,
        description="Allow one replica to span several hosts when no single host fits, where the"
        " engine can.",
    )
    overcommit: bool = Field(
        False,
        description="Take accelerators that are listed by hand even when they are too full. The"
        " engine may then fail to start.",
    )
    cores: Literal["auto"] | Annotated[int, Field(ge=1, le=4096)] = Field(
        "auto",
        description="Processor cores reserved for each replica on CPU; `auto` reserves none and"
        " shares what is not reserved.",
    )
    ram: Literal["auto"] | Bytes = Field(
        "auto",
        description="RAM reserved for each replica, in bytes or as `16GiB`. `auto` estimates it."
        " On CPU it is also the container's memory limit.",
    )


class MemorySpec(Value):
    """Accelerator memory that you know better; the bytes of one accelerator each."""

    claim: Bytes | None = Field(
        None,
        gt=0,
        description="Bytes that the model takes of each accelerator in all. It wins over what is"
        " computed; needed where nothing can be computed.",
    )
    activation: Bytes | None = Field(
        None, description="Bytes for the intermediate results of the largest batch."
    )
    cuda_graphs: Bytes | None = Field(None, description="Bytes for captured CUDA graphs.")
    draft: Bytes | None = Field(
        None, description="Bytes for the draft model of speculative decoding, its cache included."
    )
    context: Bytes | None = Field(
        None,
        description="Bytes that the driver takes for each process, outside the engine's budget.",
    )
    nccl: Bytes | None = Field(
        None,
        description="Bytes for the communication between accelerators, outside the engine's"
        " budget.",
    )


class Deadlines(Value):
    """How long each phase may take, in seconds."""

    download_seconds: int = Field(
        3600, ge=1, description="From the first byte of the weights to the last, verified one."
    )
    image_seconds: int = Field(1800, ge=1, description="Pulling the image.")
    load_seconds: int = Field(
        900, ge=1, description="From the start of the engine until it calls itself healthy."
    )
    warm_up_seconds: int = Field(
        120, ge=1, description="From healthy until the first answer is there."
    )


class ProbeSpec(Value):
    """How readiness is proven."""

    path: str = Field(
        "/health",
        pattern=PATH_PATTERN,
        description="Path that answers 200 once the engine calls itself healthy.",
    )
    request: bool = Field(
        True,
        description="Also send one real request (a token, an embedding, a score) and check the"
        " answer. Health alone does not prove that an engine serves.",
    )
    prompt: str = Field("Say hello.", min_length=1, description="Text of that request.")


class ReadinessSpec(Value):
    """When the model counts as deployed."""

    deadlines: Deadlines = Field(
        Deadlines(), description="Deadline of each phase; a phase that misses it ends the deploy."
    )
    probe: ProbeSpec = Field(ProbeSpec(), description="What is asked to prove it.")


class ModelSpec(Value):
    """One model, as it is meant to be served."""

    name: Name = Field(
        description="Name under which the model is served and under which its releases are kept."
    )
    source: str = Field(
        pattern=SOURCE_PATTERN,
        description="Where the model comes from: `hf://org/repo` or `file://directory`. In a file,"
        " a relative directory starts at that file; elsewhere it must be absolute.",
    )
    revision: str | None = Field(
        None,
        min_length=1,
        pattern=REVISION_PATTERN,
        description="Branch, tag or commit on the hub; pinned to a commit when deployed. Empty ="
        " the default branch.",
    )
    engine: EngineSpec = Field(EngineSpec(), description="Which engine, and how it is started.")
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
    placement: PlacementSpec = Field(PlacementSpec(), description="Where the model may run.")
    memory: MemorySpec = Field(
        MemorySpec(), description="Accelerator memory that is stated, not estimated."
    )
    speculative: SpeculativeSpec | None = Field(None, description="Speculative decoding (vLLM).")
    lora: tuple[AdapterSpec, ...] = Field(
        (), max_length=64, description="LoRA adapters that are loaded at the start (vLLM)."
    )
    extended_kv_cache: ExtendedCacheSpec | None = Field(
        None, description="A second KV cache in RAM (vLLM on `cuda` and `rocm`)."
    )
    replicas: int = Field(1, ge=1, le=256, description="How many copies of the model are served.")
    mode: Mode = Field(
        Mode.AUTO, description="What the model is served for. `auto` reads it from the model."
    )
    port: Literal["auto"] | Port = Field(
        "auto",
        description="Port on the host. `auto` takes a free one from the host's range; a fixed one"
        " allows one replica per host.",
    )
    readiness: ReadinessSpec = Field(
        ReadinessSpec(), description="When the model counts as deployed."
    )
    secrets: dict[VariableName, SecretName] = Field(
        {},
        description="Secrets by name: environment variable of the engine -> name of the secret"
        " (an environment variable of the deploying process, or a Prefect Secret block)."
        " `HF_TOKEN` is used for the download too.",
    )
    trust_remote_code: bool = Field(
        False, description="Run Python code that comes with the model. Off unless you trust it."
    )

    @field_validator("source")
    @classmethod
    def _is_absolute(cls, source: str) -> str:
        if source.startswith("file://") and not source.startswith("file:///"):
            raise ValueError("a directory must be absolute here: file:///path")
        return source

    @field_validator("revision")
    @classmethod
    def _stays_in_the_repository(cls, revision: str | None) -> str | None:
        if revision and ".." in revision.split("/"):
            raise ValueError("must not contain '..'")
        return revision

    @model_validator(mode="after")
    def _adapters_have_names_of_their_own(self) -> ModelSpec:
        names = [self.name, *(adapter.name for adapter in self.lora)]
        if len(set(names)) < len(names):
            raise ValueError("lora: each adapter needs a name of its own, other than the model's")
        return self

    @property
    def digest(self) -> str:
        """Short fingerprint of everything that was asked for; equal specs have equal digests.

        Defaults are left out, so that a field added later does not change every digest.
        """
        written = json.dumps(self.model_dump(mode="json", exclude_defaults=True), sort_keys=True)
        return hashlib.sha256(written.encode()).hexdigest()[:12]

    @property
    def slug(self) -> str:
        """The name as part of an artifact's key."""
        return slug(self.name)


def slug(name: str) -> str:
    """A name in lower case, digits and dashes, as Prefect wants it in artifact keys."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
