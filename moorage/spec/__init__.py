"""What a user writes: one `ModelSpec` per model. Its fleet is in `moorage.inventory.fleet`.

Every field has a description: it is the form in the Prefect UI and the reference in docs/spec.md.
"""

from moorage.spec.adapters import AdapterSpec, AdapterUpdatesSpec
from moorage.spec.application import ApplicationSpec, AutoscalingSpec
from moorage.spec.container import ContainerSettings, IpcMode, NetworkMode, RestartPolicy
from moorage.spec.engine import ApiKey, Distributed, EngineName, EngineSpec, RuntimeName
from moorage.spec.extended_cache import ExtendedCacheSpec
from moorage.spec.memory import MemorySpec
from moorage.spec.model import BESIDE, Mode, ModelSpec, slug
from moorage.spec.patterns import (
    ACCELERATOR_PATTERN,
    CAPABILITY_PATTERN,
    FOLDER_PATTERN,
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
from moorage.spec.placement import PlacementSpec, Policy, Strategy
from moorage.spec.readiness import Deadlines, ProbeSpec, ReadinessSpec
from moorage.spec.redeploying import Approval, OnDrift, RedeploySpec
from moorage.spec.replacing import ReplaceSpec, ReplaceStrategy
from moorage.spec.restart import RestartSpec, WhenDead
from moorage.spec.smoke_test import CompareSpec, MessageSpec, PromptSpec
from moorage.spec.speculative import DraftMethod, SpeculativeSpec
from moorage.spec.stopping import StoppingSpec

__all__ = [
    "ACCELERATOR_PATTERN",
    "BESIDE",
    "CAPABILITY_PATTERN",
    "FOLDER_PATTERN",
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
    "ApiKey",
    "ApplicationSpec",
    "Approval",
    "AutoscalingSpec",
    "CompareSpec",
    "ContainerSettings",
    "Deadlines",
    "Distributed",
    "DraftMethod",
    "EngineName",
    "EngineSpec",
    "ExtendedCacheSpec",
    "FilePath",
    "Folder",
    "IpcMode",
    "Kind",
    "MemorySpec",
    "MessageSpec",
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
    "PromptSpec",
    "ReadinessSpec",
    "RedeploySpec",
    "ReplaceSpec",
    "ReplaceStrategy",
    "RestartPolicy",
    "RestartSpec",
    "Revision",
    "RuntimeName",
    "SecretName",
    "SecretVariable",
    "Source",
    "SpeculativeSpec",
    "StoppingSpec",
    "Strategy",
    "UrlPath",
    "VariableName",
    "WhenDead",
    "slug",
]
