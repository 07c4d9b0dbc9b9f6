"""How a model runs as an application of Ray Serve, on a Ray cluster."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field, field_validator, model_validator

from moorage.common.values import InputValue
from moorage.spec.patterns import IMPORT_PATTERN


class AutoscalingSpec(InputValue):
    """Between which numbers of replicas Ray Serve decides by itself."""

    min_replicas: int = Field(1, ge=1, le=1024, description="Replicas that are always there.")
    max_replicas: int = Field(ge=1, le=1024, description="Replicas under the highest load.")
    target_ongoing_requests: float | None = Field(
        None,
        gt=0,
        description="Requests in flight that a replica is meant to have. Empty = Ray's own number.",
    )

    @model_validator(mode="after")
    def _ascends(self) -> AutoscalingSpec:
        if self.max_replicas < self.min_replicas:
            raise ValueError("max_replicas: it must not be below `min_replicas`")
        return self


class ApplicationSpec(InputValue):
    """What Ray Serve is told about the model's application (`placement.cluster`)."""

    multiline: ClassVar[frozenset[str]] = frozenset({"args", "deployments", "runtime_env"})

    import_path: str | None = Field(
        None,
        pattern=IMPORT_PATTERN,
        description="What Ray Serve builds the application from, `module:attribute`; it must be"
        " importable on the cluster. Belongs to `engine.name: custom`; vLLM is built by Ray Serve"
        " LLM.",
    )
    args: dict[str, Any] = Field(
        {},
        description="Arguments of that builder; `{{model_path}}` and `{{model_name}}` are filled"
        " in. For vLLM: further keys of its `LLMConfig`, such as `placement_group_config`; they win"
        " over derived ones. Ray's dashboard shows them: never put a secret here.",
    )
    accelerator_type: str | None = Field(
        None,
        min_length=1,
        max_length=64,
        description="Kind of accelerator as Ray names it, such as `H100` or `L4` (vLLM). Empty ="
        " any.",
    )
    autoscaling: AutoscalingSpec | None = Field(
        None,
        description="Let Ray Serve choose the number of replicas; `replicas` is then left out"
        " (vLLM).",
    )
    deployments: tuple[dict[str, Any], ...] = Field(
        (),
        max_length=64,
        description="Options of the application's deployments in the words of Ray Serve's config"
        " file, such as `{name: Server, num_replicas: 2}` (custom).",
    )
    runtime_env: dict[str, Any] = Field(
        {},
        description="Ray's runtime environment, such as `{pip: [...]}` or `{working_dir:"
        " https://...}`. Variables belong to `engine.env`.",
    )

    @field_validator("runtime_env")
    @classmethod
    def _variables_stand_elsewhere(cls, runtime_env: dict[str, Any]) -> dict[str, Any]:
        if "env_vars" in runtime_env:
            raise ValueError("variables belong to `engine.env`")
        return runtime_env
