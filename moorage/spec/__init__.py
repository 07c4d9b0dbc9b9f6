"""What a user writes: one `ModelSpec` per model. Its fleet is in `moorage.inventory.fleet`.

Every field has a description: it is the form in the Prefect UI and the reference in docs/spec.md.
"""

from moorage.spec.container import ContainerSettings, IpcMode, NetworkMode, RestartPolicy
from moorage.spec.engine import ApiKey, Distributed, EngineName, EngineSpec, RuntimeName
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
    Routing,
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
from moorage.spec.placement import ExtendedCacheSpec, MemorySpec, PlacementSpec, Policy, Strategy
from moorage.spec.ray_cluster import ApplicationSpec, AutoscalingSpec
from moorage.spec.readiness import (
    CompareSpec,
    Deadlines,
    MessageSpec,
    ProbeSpec,
    PromptSpec,
    ReadinessSpec,
)
