"""The engine that serves a model, and the settings of its start."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from pydantic import ByteSize, Field, ValidationInfo, field_validator, model_validator

from moorage.common.failures import Failure
from moorage.common.units import GIB, MIB, Bytes
from moorage.common.values import RECORDED, InputValue
from moorage.spec.arguments import EngineArguments, parse_entries
from moorage.spec.container import ContainerSettings, IpcMode
from moorage.spec.engine_names import EngineName, RuntimeName
from moorage.spec.engine_settings import LlamaCppSettings, TritonSettings, VllmSettings
from moorage.spec.patterns import (
    IMAGE_PATTERN,
    VERSION_PATTERN,
    Name,
    PackageName,
    VariableName,
    Word,
    check_environment,
    check_placeholders,
    check_program,
    check_secret_options,
    check_words,
)
from moorage.spec.ray_cluster import ApplicationSpec

DEFAULT_SHM = ByteSize(10 * GIB)
MOST_GIB = 512
"""A number of shared memory up to this, without a unit, was probably counted in GiB."""


class Distributed(StrEnum):
    """What joins the hosts of a replica that spans several."""

    AUTO = "auto"
    NATIVE = "native"
    RAY = "ray"


class ApiKey(StrEnum):
    """Whether moorage gives an engine a key that other machines reach."""

    AUTO = "auto"
    NONE = "none"


class EngineSpec(InputValue):
    """Which engine serves the model, and how it starts."""

    multiline: ClassVar[frozenset[str]] = frozenset({"args", "command", "entrypoint", "env"})

    name: EngineName = Field(
        EngineName.AUTO,
        description="Inference engine. `auto` takes llama.cpp for GGUF weights, vLLM if there are"
        " accelerators that it supports (SGLang if only that is installed), otherwise"
        " transformers; `command` and `image` without a name are `custom`. `custom` is any other"
        " server: `command` and `image` say what runs, `readiness.probe.path` where it reports its"
        " health.",
    )
    custom: Name | None = Field(
        None,
        description="Name of a custom engine in `engines` of the fleet file, which then gives"
        " image and command (`name: custom`).",
    )
    runtime: RuntimeName = Field(
        RuntimeName.AUTO,
        description="How the engine runs: in a container (`docker`) or as a program installed on"
        " the host (`process`). `auto` prefers a container if an image is known."
        " `placement.cluster` implies `ray`.",
    )
    version: str | None = Field(
        None,
        pattern=VERSION_PATTERN,
        description="Engine version, such as `0.32.0`; it selects the image. Empty takes the"
        " default version of the fleet file, else the one that this release of moorage was tested"
        " with.",
    )
    image: str | None = Field(
        None,
        min_length=1,
        pattern=IMAGE_PATTERN,
        description="Container image to use instead of the engine's official one.",
    )
    args: tuple[Word, ...] = Field(
        (),
        max_length=1000,
        description="Arguments added to the engine's command line; they win over derived ones."
        " Each entry is one argument or a whole `--name value` line.",
    )
    env: dict[VariableName, Word] = Field(
        {},
        max_length=1000,
        description="Environment variables for the engine, such as"
        ' `{"VLLM_LOGGING_LEVEL": "DEBUG"}`; they win over derived ones. The placeholders of'
        " `command` are filled in. Never put a secret here: use `secrets`.",
    )
    api_key: ApiKey = Field(
        ApiKey.AUTO,
        description="API key that the engine requires if the host's `bind` is not loopback and"
        " `secrets` names none: `auto` makes one, which `moorage key show NAME` prints; `none`"
        " admits everybody who reaches the engine (vLLM and llama.cpp; other engines have no key).",
    )
    api_key_variable: VariableName | None = Field(
        None,
        description="Variable in `secrets` with the API key that a server of your own requires;"
        " probes, commands and the gateway send it. vLLM's and llama.cpp's are known.",
    )
    command: tuple[str, ...] | None = Field(
        None,
        min_length=1,
        max_length=1000,
        description="Replaces the whole command line of the engine in `name`; with `image` and no"
        " name it starts a custom one. `{{model_path}}`, `{{model_name}}`, `{{host}}` (where the"
        " engine listens), `{{host_ip}}` (the host's `bind`), `{{port}}`,"
        " `{{accelerator_count}}` and `{{accelerator_ids}}` are filled in, then names of `env`;"
        " any other is left as it is.",
    )
    entrypoint: tuple[str, ...] | None = Field(
        None,
        min_length=1,
        max_length=1000,
        description="Program and words that replace the engine's own (`vllm serve`); its arguments"
        " follow. The placeholders of `command` are filled in.",
    )
    packages: tuple[PackageName, ...] = Field(
        (),
        max_length=64,
        description="Python packages, such as `name==1.2`, that uv or pip installs in the"
        " container before the engine starts; not with another `container.user` than root."
        " Variables such as `PIP_INDEX_URL` in `env` or `secrets` name the index.",
    )
    keep_cuda_compat: bool = Field(
        False,
        description="Keep the forward-compatibility libraries of an image whose CUDA is newer than"
        " the driver's. By default they are removed before the start, because consumer cards fail"
        " with them.",
    )
    shm: Bytes = Field(
        DEFAULT_SHM, description="Shared memory of the container, in bytes or as `10GiB`."
    )
    container: ContainerSettings = Field(
        ContainerSettings.defaults(), description="How the container is isolated from its host."
    )
    application: ApplicationSpec | None = Field(
        None, description="How the model runs on a Ray cluster (`placement.cluster`)."
    )
    distributed: Distributed = Field(
        Distributed.AUTO,
        description="What joins the hosts of a replica that spans several: the engine itself"
        " (`native`), or a `ray` cluster that moorage starts for it, which needs an image with"
        " Ray. `auto` is `native` if the engine's version can do that.",
    )
    keep_cache: bool = Field(
        True,
        description="Keep compiled code in a folder of the host, so that the model's next start"
        " with the same image is faster (vLLM). `false` compiles at every start.",
    )

    vllm: VllmSettings = Field(
        VllmSettings.defaults(), description="Settings of vLLM (`name: vllm`)."
    )
    llama_cpp: LlamaCppSettings = Field(
        LlamaCppSettings.defaults(), description="Settings of llama.cpp (`name: llama.cpp`)."
    )
    triton: TritonSettings = Field(
        TritonSettings.defaults(),
        description="Settings of Triton (`name: triton`). `engine.args` are those of vLLM inside"
        " it.",
    )

    @field_validator("args")
    @classmethod
    def _check_args(cls, args: tuple[str, ...]) -> tuple[str, ...]:
        try:
            words = (*args, *parse_entries(args).words)
        except Failure as failure:
            raise ValueError(failure.detail) from failure
        if "--" in words:
            raise ValueError("'--' would end the options, derived ones too")
        check_words(words)
        check_placeholders(args)
        return args

    @field_validator("env")
    @classmethod
    def _check_env(cls, env: dict[str, str]) -> dict[str, str]:
        check_environment(env)
        return env

    @field_validator("shm")
    @classmethod
    def _check_shm(cls, shm: ByteSize, info: ValidationInfo) -> ByteSize:
        # Somebody has counted in GiB; for 0, Docker would take its own 64 MiB.
        if shm < MIB and info.context != RECORDED:
            meant = f"{shm:d}GiB" if 0 < shm <= MOST_GIB else "10GiB"
            raise ValueError(f"at least 1MiB, such as {meant}; without a unit it counts bytes")
        return shm

    @field_validator("command", "entrypoint")
    @classmethod
    def _check_line(cls, words: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if words:
            check_program(words[0])
            check_words(words)
            check_placeholders(words)
            check_secret_options(words)
        return words

    @field_validator("container")
    @classmethod
    def _check_container(
        cls, container: ContainerSettings, info: ValidationInfo
    ) -> ContainerSettings:
        if info.data.get("runtime") == RuntimeName.PROCESS and container != ContainerSettings():
            raise ValueError("a process has none; leave it out, or `runtime: process`")
        if container.ipc == IpcMode.HOST and info.data.get("shm", DEFAULT_SHM) != DEFAULT_SHM:
            raise ValueError("`shm` is the host's with `ipc: host`; leave one of the two out")
        # pip would fall back to the user's home, which later releases share.
        if container.user and info.data.get("packages") and info.context != RECORDED:
            raise ValueError(
                "`packages` are installed by root, among those of the image: build them into an"
                " image of your own, or leave `user` out"
            )
        return container

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: object) -> object:
        """Expand the short form `engine: vllm` to `engine: {name: vllm}`."""
        return {"name": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_fields(self) -> EngineSpec:
        checked = (EngineName.AUTO, EngineName.VLLM, EngineName.TRITON)
        if self.stated_name not in checked or self.entrypoint:
            # vLLM's arguments are checked elsewhere, by more specific rules.
            check_secret_options(self.arguments.words)
        if self.command and self.entrypoint:
            raise ValueError("entrypoint: `command` is the whole line already; leave one out")
        if self.packages and self.runtime == RuntimeName.PROCESS:
            raise ValueError(
                "packages: they are installed in a container, never on a host; install them with"
                " the engine yourself, or leave `runtime: process` out"
            )
        for field, name in SETTINGS.items():
            if getattr(self, field) != type(getattr(self, field))() and self.name != name:
                raise ValueError(f"{field}: these are settings of {name}; set `name: {name}`")
        if self.custom and self.name != EngineName.CUSTOM:
            raise ValueError("custom: it names a custom engine, so `name: custom` belongs to it")
        if self.name == EngineName.CUSTOM and not self.custom and not self.application:
            if not self.command:
                raise ValueError("command: a custom engine needs one, or `custom` with its name")
            if not self.image and self.runtime != RuntimeName.PROCESS:
                raise ValueError("image: a custom engine needs one, or `runtime: process`")
        return self

    @property
    def stated_name(self) -> EngineName:
        """The engine that the spec states; `auto` where the fleet decides.

        An image and a command without a name mean a custom server.
        """
        own = self.name == EngineName.AUTO and self.image and self.command
        return EngineName.CUSTOM if own else self.name

    @property
    def may_be_vllm(self) -> bool:
        """Whether vLLM may run the model, also inside Triton."""
        return self.stated_name in (EngineName.AUTO, EngineName.VLLM, EngineName.TRITON)

    @property
    def arguments(self) -> EngineArguments:
        """The arguments from the engine's settings and from `args`; `args` come last and win."""
        return parse_entries((*self.vllm.words, *self.llama_cpp.words, *self.args))


SETTINGS = {
    "vllm": EngineName.VLLM,
    "llama_cpp": EngineName.LLAMA_CPP,
    "triton": EngineName.TRITON,
}
"""Fields with settings of a single engine, and that engine."""
