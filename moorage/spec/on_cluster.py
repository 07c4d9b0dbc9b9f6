"""Which fields of a spec have a meaning on a Ray cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
"""Fields that an application of Ray Serve can follow; the others speak of hosts and containers."""

OF_VLLM = ("accelerator_type", "autoscaling")
OF_CUSTOM = ("import_path", "deployments")


def mistake_on_cluster(written: Mapping[str, Any]) -> str:
    """What of a spec does not go with `placement.cluster`; empty = nothing.

    Args:
        written: The spec without its defaults.
    """
    foreign = [
        f"{section}.{field}".lstrip(".")
        for section, taken in TAKEN.items()
        for field in (written.get(section, {}) if section else written)
        if field not in taken
    ]
    if foreign:
        return (
            f"placement.cluster: {', '.join(foreign)} cannot be followed on a Ray cluster, where"
            " Ray starts the model; leave it out"
        )
    if written.get("replace", {}).get("strategy") == "canary":
        return "replace.strategy: Ray starts all replicas of an application at once; take surge"
    return _engine(written) or _secrets(written)


def mistake_elsewhere(written: Mapping[str, Any]) -> str:
    """What of a spec needs `placement.cluster`; empty = nothing."""
    engine = written.get("engine", {})
    if "application" in engine:
        return "engine.application: it is for a Ray cluster; name one in `placement.cluster`"
    if engine.get("runtime") == "ray":
        return "engine.runtime: a model runs on Ray where `placement.cluster` names a cluster"
    return ""


def _engine(written: Mapping[str, Any]) -> str:
    engine = written.get("engine", {})
    name, application = engine.get("name", "vllm"), engine.get("application", {})
    if name == "transformers":
        return "engine.name: a Ray cluster serves vllm, or a custom application"
    if engine.get("runtime", "ray") != "ray":
        return "engine.runtime: on a Ray cluster it is ray; leave it out"
    if isinstance(written.get("placement", {}).get("accelerators"), list):
        return "placement.accelerators: Ray chooses which; say how many"
    foreign = [
        field for field in (OF_VLLM if name == "custom" else OF_CUSTOM) if field in application
    ]
    if foreign:
        return f"engine.application: {', '.join(foreign)} does not go with {name}"
    if name == "custom" and "import_path" not in application:
        return "engine.application: a custom application needs its `import_path`"
    if name == "custom" and engine.get("args"):
        return "engine.args: a custom application takes `engine.application.args`"
    if name == "custom" and written.get("replicas", 1) > 1:
        return "replicas: say `num_replicas` in `engine.application.deployments`"
    if "autoscaling" in application and "replicas" in written:
        return "replicas: `engine.application.autoscaling` decides; leave one of the two out"
    return ""


def _secrets(written: Mapping[str, Any]) -> str:
    names = sorted(set(written.get("secrets", {})) - {HUB_TOKEN})
    if not names:
        return ""
    return (
        f"secrets: {', '.join(names)} would stand in clear text in Ray's dashboard; set them in the"
        " environment of the cluster's nodes, and leave them out here"
    )
