"""The image that was chosen, and the question that it answers."""

from __future__ import annotations

from moorage.common.values import Origin, Value
from moorage.inventory.fleet_engines import EngineVersions
from moorage.spec import EngineName
from moorage.spec.image_reference import repository


class ImageQuestion(Value):
    """Everything that the choice of an image depends on.

    Attributes:
        engine: The engine.
        kind: Accelerator type, or `cpu`; empty = the host has nothing that was chosen.
        architecture: CPU architecture of the host, such as `amd64`.
        image: What the user wrote; it wins.
        version: Engine version in the spec; empty = any.
        default_version: Engine version to prefer where the spec names none.
        versions: What is configured of the engine's versions.
        closed: Whether there are no versions but these: nobody publishes images of the engine.
        runtime: Newest accelerator runtime that the host's driver runs; empty = not known.
        family: Chip family as the host reports it, such as `Ascend910B3`.
    """

    engine: EngineName
    kind: str
    architecture: str = "amd64"
    image: str = ""
    version: str = ""
    default_version: str = ""
    versions: EngineVersions = EngineVersions()
    closed: bool = False
    runtime: str = ""
    family: str = ""

    def __hash__(self) -> int:
        """Without the versions, which hold a dict."""
        own = (self.image, self.version, self.default_version)
        return hash((self.engine, self.kind, self.architecture, self.runtime, self.family, *own))


class Image(Value):
    """What step `image` makes.

    Attributes:
        reference: As it is written, such as `vllm/vllm-openai:v0.32.0`.
        digest: `sha256:...` of the repository where one is known, else empty.
        identity: The local image id, known once the host has it.
        engine_version: Version that the reference was chosen for; empty = unknown.
        origin: `user`, or `default` when it comes from the catalogue.
        reason: Why this one.
        newer_runtime: Whether the accelerator runtime in it is newer than what the host's driver
            was made for, so that it runs by minor-version compatibility only. NVIDIA's container
            hook refuses such an image unless `NVIDIA_DISABLE_REQUIRE=1` is set.
    """

    reference: str
    digest: str = ""
    identity: str = ""
    engine_version: str = ""
    origin: Origin
    reason: str
    newer_runtime: bool = False

    @property
    def pinned(self) -> str:
        """What is executed: by digest, else by local id, else by reference."""
        if self.digest:
            return f"{repository(self.reference)}@{self.digest}"
        return self.identity or self.reference
