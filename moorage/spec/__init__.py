"""Model specs: one `ModelSpec` per model. The fleet file is in `moorage.inventory.fleet`.

Every field has a description, which the form in the Prefect UI and docs/spec.md show. Each module
is imported on the first use of one of its names, so that one type does not import the whole spec.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moorage.spec.container import ContainerSettings, IpcMode, NetworkMode, RestartPolicy
    from moorage.spec.engine import ApiKey, Distributed, EngineSpec
    from moorage.spec.engine_names import EngineName, RuntimeName
    from moorage.spec.engine_settings import TritonInstance, TritonSettings
    from moorage.spec.lifecycle import (
        Approval,
        OnDrift,
        RedeploySpec,
        ReplaceSpec,
        ReplaceStrategy,
        RestartSpec,
        StoppingSpec,
        WhenDead,
    )
    from moorage.spec.model import (
        AdapterSpec,
        AdapterUpdatesSpec,
        DraftMethod,
        Mode,
        ModelSpec,
        SpeculativeSpec,
        slug,
    )
    from moorage.spec.patterns import (
        PATTERNS_IN_WORDS,
        AcceleratorId,
        FilePath,
        Folder,
        Kind,
        Name,
        PackageName,
        Port,
        Revision,
        SecretName,
        SecretVariable,
        Source,
        UrlPath,
        VariableName,
    )
    from moorage.spec.placement import (
        ExtendedCacheSpec,
        MemorySpec,
        PlacementSpec,
        Policy,
        Strategy,
    )
    from moorage.spec.ray_cluster import ApplicationSpec, AutoscalingSpec
    from moorage.spec.readiness import (
        CompareSpec,
        Deadlines,
        MessageSpec,
        ProbeSpec,
        PromptSpec,
        ReadinessSpec,
    )
    from moorage.spec.routing import Routing

_NAMES = {
    "container": "ContainerSettings IpcMode NetworkMode RestartPolicy",
    "engine": "ApiKey Distributed EngineSpec",
    "engine_names": "EngineName RuntimeName",
    "engine_settings": "TritonInstance TritonSettings",
    "lifecycle": "Approval OnDrift RedeploySpec ReplaceSpec ReplaceStrategy RestartSpec"
    " StoppingSpec WhenDead",
    "model": "AdapterSpec AdapterUpdatesSpec DraftMethod Mode ModelSpec SpeculativeSpec slug",
    "patterns": "PATTERNS_IN_WORDS AcceleratorId FilePath Folder Kind Name PackageName Port"
    " Revision SecretName SecretVariable Source UrlPath VariableName",
    "placement": "ExtendedCacheSpec MemorySpec PlacementSpec Policy Strategy",
    "ray_cluster": "ApplicationSpec AutoscalingSpec",
    "readiness": "CompareSpec Deadlines MessageSpec ProbeSpec PromptSpec ReadinessSpec",
    "routing": "Routing",
}
"""Public names of this folder, by module."""

_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Import the module of a public name, and return the name's value."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return found
