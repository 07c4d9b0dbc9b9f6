"""A model on a Ray cluster: its Ray Serve application, and the fields that may accompany it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field, field_validator, model_validator

from moorage.common.values import InputValue
from moorage.spec.patterns import IMPORT_PATTERN


class AutoscalingSpec(InputValue):
    """The limits between which Ray Serve chooses the number of replicas."""

    min_replicas: int = Field(1, ge=1, le=1024, description="Replicas at the lowest load.")
    max_replicas: int = Field(ge=1, le=1024, description="Replicas at the highest load.")
    target_ongoing_requests: float | None = Field(
        None,
        gt=0,
        description="Requests in flight that Ray aims at for each replica. Empty = Ray's default.",
    )

    @model_validator(mode="after")
    def _check_order(self) -> AutoscalingSpec:
        if self.max_replicas < self.min_replicas:
            raise ValueError("max_replicas: it must not be below `min_replicas`")
        return self


class ApplicationSpec(InputValue):
    """The settings of the model's application for Ray Serve (`placement.cluster`)."""

    multiline: ClassVar[frozenset[str]] = frozenset({"args", "deployments", "runtime_env"})

    import_path: str | None = Field(
        None,
        pattern=IMPORT_PATTERN,
        description="Where Ray Serve finds the application, `module:attribute`; it must be"
        " importable on the cluster. Only for `engine.name: custom`; Ray Serve LLM builds vLLM's.",
    )
    args: dict[str, Any] = Field(
        {},
        description="Arguments of the application; `{{model_path}}` and `{{model_name}}` are"
        " filled in. For vLLM: further keys of its `LLMConfig`, such as `placement_group_config`;"
        " they win over derived ones. Ray's dashboard shows them: never put a secret here.",
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
    def _check_runtime_env(cls, runtime_env: dict[str, Any]) -> dict[str, Any]:
        if "env_vars" in runtime_env:
            raise ValueError("variables belong to `engine.env`")
        return runtime_env


HUB_TOKEN = "HF_TOKEN"

TAKEN: Mapping[str, frozenset[str]] = {
    "": frozenset(
        {
            *("name", "source", "revision", "engine", "context", "placement", "speculative"),
            *("replicas", "mode", "readiness", "stopping", "secrets", "trust_remote_code"),
            *("labels", "redeploy", "replace"),
        }
    ),
    "engine": frozenset({"name", "runtime", "version", "args", "env", "application"}),
    "placement": frozenset({"cluster", "accelerators"}),
    "speculative": frozenset({"method", "tokens", "ngram_min", "ngram_max"}),
}
"""Fields, by section, that a Ray Serve application supports; others concern hosts, containers."""

NOT_WITH = {
    "vllm": ("import_path", "deployments"),
    "custom": ("accelerator_type", "autoscaling"),
}
"""Settings of an application that an engine excludes."""


def check_on_cluster(written: Mapping[str, Any]) -> None:
    """Refuse fields that exclude `placement.cluster`; `written` has no defaults."""
    foreign = [
        f"{section}.{field}".lstrip(".")
        for section, taken in TAKEN.items()
        for field in (written.get(section, {}) if section else written)
        if field not in taken
    ]
    if foreign:
        raise ValueError(
            f"placement.cluster: {', '.join(foreign)} cannot be followed on a Ray cluster, where"
            " Ray starts the model; leave it out"
        )
    if written.get("replace", {}).get("strategy") == "canary":
        raise ValueError(
            "replace.strategy: Ray starts all replicas of an application at once; take surge"
        )
    _check_engine(written)
    if names := sorted(set(written.get("secrets", {})) - {HUB_TOKEN}):
        raise ValueError(
            f"secrets: {', '.join(names)} would stand in clear text in Ray's dashboard; set them in"
            " the environment of the cluster's nodes, and leave them out here"
        )


def _check_engine(written: Mapping[str, Any]) -> None:
    engine = written.get("engine", {})
    name, application = engine.get("name", "vllm"), engine.get("application", {})
    if name not in NOT_WITH:
        raise ValueError("engine.name: a Ray cluster serves vllm, or a custom application")
    if engine.get("runtime", "ray") != "ray":
        raise ValueError("engine.runtime: on a Ray cluster it is ray; leave it out")
    if isinstance(written.get("placement", {}).get("accelerators"), list):
        raise ValueError("placement.accelerators: Ray chooses which; say how many")
    if foreign := [field for field in NOT_WITH[name] if field in application]:
        raise ValueError(f"engine.application: {', '.join(foreign)} does not go with {name}")
    if name == "custom" and "import_path" not in application:
        raise ValueError("engine.application: a custom application needs its `import_path`")
    if name == "custom" and engine.get("args"):
        raise ValueError("engine.args: a custom application takes `engine.application.args`")
    if name == "custom" and written.get("replicas", 1) > 1:
        raise ValueError("replicas: say `num_replicas` in `engine.application.deployments`")
    if "autoscaling" in application and "replicas" in written:
        raise ValueError(
            "replicas: `engine.application.autoscaling` decides; leave one of the two out"
        )
