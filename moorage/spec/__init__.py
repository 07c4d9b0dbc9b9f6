"""What a user writes: one `ModelSpec` per model. Its fleet is in `moorage.fleet`.

Every field has a description: it is the form in the Prefect UI and the reference in docs/spec.md.
"""

from moorage.spec.adapters import AdapterSpec, AdapterUpdatesSpec
from moorage.spec.application import ApplicationSpec, AutoscalingSpec
from moorage.spec.container import ContainerSettings, IpcMode, NetworkMode, RestartPolicy
from moorage.spec.engine import Distributed, EngineName, EngineSpec, RuntimeName
from moorage.spec.extended_cache import ExtendedCacheSpec
from moorage.spec.memory import MemorySpec
from moorage.spec.model import BESIDE, Mode, ModelSpec, slug
from moorage.spec.patterns import (
    ACCELERATOR_PATTERN,
    CAPABILITY_PATTERN,
    GROUP_PATTERN,
    IMAGE_PATTERN,
    IMPORT_PATTERN,
    KIND_PATTERN,
    NAME_PATTERN,
    PACKAGE_PATTERN,
    PATH_PATTERN,
    PATTERNS_IN_WORDS,
    REVISION_PATTERN,
    SECRET_PATTERN,
    SOURCE_PATTERN,
    ULIMIT_PATTERN,
    VARIABLE_PATTERN,
    VERSION_PATTERN,
    AcceleratorId,
    Kind,
    Name,
    PackageName,
    Port,
    Revision,
    SecretName,
    Source,
    VariableName,
)
from moorage.spec.placement import PlacementSpec, Policy, Strategy
from moorage.spec.readiness import Deadlines, ProbeSpec, ReadinessSpec
from moorage.spec.redeploying import Approval, OnDrift, RedeploySpec
from moorage.spec.speculative import DraftMethod, SpeculativeSpec
from moorage.spec.stopping import StoppingSpec

__all__ = [
    "ACCELERATOR_PATTERN",
    "BESIDE",
    "CAPABILITY_PATTERN",
    "GROUP_PATTERN",
    "IMAGE_PATTERN",
    "IMPORT_PATTERN",
    "KIND_PATTERN",
    "NAME_PATTERN",
    "PACKAGE_PATTERN",
    "PATH_PATTERN",
    "PATTERNS_IN_WORDS",
    "REVISION_PATTERN",
    "SECRET_PATTERN",
    "SOURCE_PATTERN",
    "ULIMIT_PATTERN",
    "VARIABLE_PATTERN",
    "VERSION_PATTERN",
    "AcceleratorId",
    "AdapterSpec",
    "AdapterUpdatesSpec",
    "ApplicationSpec",
    "Approval",
    "AutoscalingSpec",
    "ContainerSettings",
    "Deadlines",
    "Distributed",
    "DraftMethod",
    "EngineName",
    "EngineSpec",
    "ExtendedCacheSpec",
    "IpcMode",
    "Kind",
    "MemorySpec",
    "Mode",
    "ModelSpec",
    "Name",
    "NetworkMode",
    "OnDrift",
    "PackageName",
    "PlacementSpec",
    "Policy",
    "Port",
    "ProbeSpec",
    "ReadinessSpec",
    "RedeploySpec",
    "RestartPolicy",
    "Revision",
    "RuntimeName",
    "SecretName",
    "Source",
    "SpeculativeSpec",
    "StoppingSpec",
    "Strategy",
    "VariableName",
    "slug",
]
