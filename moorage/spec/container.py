"""Settings of a container's isolation from its host."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints, ValidationInfo, field_validator

from moorage.common.units import Bytes
from moorage.common.values import InputValue
from moorage.spec.patterns import CAPABILITY_PATTERN, GROUP_PATTERN, ULIMIT_PATTERN

Capability = Annotated[str, StringConstraints(pattern=CAPABILITY_PATTERN)]
Group = Annotated[str, StringConstraints(pattern=GROUP_PATTERN)]
UlimitName = Annotated[str, StringConstraints(pattern=ULIMIT_PATTERN)]
Limit = Annotated[int, Field(ge=-1)]


class IpcMode(StrEnum):
    """Who shares the container's shared memory."""

    PRIVATE = "private"
    SHAREABLE = "shareable"
    HOST = "host"


class NetworkMode(StrEnum):
    """How the container is reached."""

    PUBLISHED = "published"
    HOST = "host"


class RestartPolicy(StrEnum):
    """What Docker does when the engine ends."""

    NONE = "none"
    ON_FAILURE = "on-failure"
    ALWAYS = "always"
    UNLESS_STOPPED = "unless-stopped"


class ContainerSettings(InputValue):
    """How far a container is shut off from its host. The defaults give it nothing but its model,
    its devices and one port."""

    user: int | None = Field(
        None, ge=0, description="User id that the engine runs as. Empty = the image's own."
    )
    group: int | None = Field(
        None, ge=0, description="Group id that goes with `user`. Empty = Docker decides."
    )
    groups: tuple[Group, ...] = Field(
        (),
        description="Further groups, by id, or by name if the image knows it, such as the host's"
        " `render` for a user that is not root.",
    )
    ulimits: dict[UlimitName, Limit] = Field(
        {},
        description="Limits of the container's processes, such as `{memlock: -1, nofile: 65536}`;"
        " -1 = unlimited. `stack` and `memlock` are in bytes.",
    )
    ipc: IpcMode = Field(
        IpcMode.PRIVATE,
        description="Shared memory: the container's own (`private`, of the size `engine.shm`), one"
        " that other containers may join (`shareable`), or the host's (`host`).",
    )
    network: NetworkMode = Field(
        NetworkMode.PUBLISHED,
        description="`published`: a network of its own, with one port published on the host's"
        " `bind`. `host`: the host's network; the engine itself listens on `bind`.",
    )
    restart: RestartPolicy = Field(
        RestartPolicy.NONE,
        description="What Docker does when the engine exits after it was ready. `on-failure` is"
        " not enough for vLLM, which exits with status 0 when its engine has died: take `always`"
        " or `unless-stopped`. An engine that exits before it is ready has failed under any"
        " policy.",
    )
    privileged: bool = Field(
        False,
        description="All rights and all devices of the host. Whoever takes over the engine then"
        " owns the host; leave it off.",
    )
    capabilities: tuple[Capability, ...] = Field(
        (), description="Capabilities to add, such as `SYS_NICE`. No container gets any by default."
    )
    memory: Bytes | None = Field(
        None,
        description="Limit of RAM on accelerators. Empty = none. On CPU the claim is the limit.",
    )
    cores: int | None = Field(
        None, ge=1, description="Limit of processor cores. Empty = the claimed cores, or no limit."
    )

    @field_validator("group")
    @classmethod
    def _check_group(cls, group: int | None, info: ValidationInfo) -> int | None:
        if group is not None and info.data.get("user") is None:
            raise ValueError("needs `user`, too")
        return group

    @field_validator("capabilities")
    @classmethod
    def _check_capabilities(cls, added: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if added and info.data.get("privileged"):
            raise ValueError("`privileged` has them all; leave one of the two out")
        return added
