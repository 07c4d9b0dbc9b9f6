"""Model specs: one `ModelSpec` per model. The fleet file is in `moorage.inventory.fleet`.

Every field has a description, which the form in the Prefect UI and docs/spec.md show. Each module
is imported on the first use of one of its names, so that one type does not import the whole spec.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moorage.spec.companions import *
    from moorage.spec.container import *
    from moorage.spec.engine import *
    from moorage.spec.engine_names import *
    from moorage.spec.engine_settings import *
    from moorage.spec.lifecycle import *
    from moorage.spec.model import *
    from moorage.spec.patterns import *
    from moorage.spec.placement import *
    from moorage.spec.ray_cluster import *
    from moorage.spec.readiness import *

_NAMES = {
    "companions": "AdapterSpec AdapterUpdatesSpec DraftMethod SpeculativeSpec",
    "container": "ContainerSettings IpcMode NetworkMode RestartPolicy",
    "engine": "ApiKey Distributed EngineSpec",
    "engine_names": "EngineName RuntimeName",
    "engine_settings": "TritonInstance TritonSettings",
    "lifecycle": "Approval OnDrift RedeploySpec ReplaceStrategy RestartSpec StoppingSpec WhenDead",
    "model": "Mode ModelSpec slug",
    "patterns": "PATTERNS_IN_WORDS FilePath Folder Name SecretName",
    "placement": "ExtendedCacheSpec MemorySpec Policy Strategy",
    "ray_cluster": "ApplicationSpec",
    "readiness": "Deadlines ProbeSpec PromptSpec",
}
"""Public names of this folder, by module."""

_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return found
