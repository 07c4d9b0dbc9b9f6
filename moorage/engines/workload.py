"""A started container or process of a release."""

from collections.abc import Iterable

from moorage.common.values import Value
from moorage.models.pin import Pin
from moorage.placement.role import Role
from moorage.spec import RuntimeName

OPENAI = "/v1"
"""Path prefix of an OpenAI-compatible interface."""


class Workload(Value):
    """A started container or process, with the name of its `ContainerSpec`.

    Attributes:
        identity: Container id, or `pid@start-time` of the process.
        endpoint: Base URL at which it answers, if it leads.
        base_path: Path prefix of its HTTP interface, below the endpoint.
        adapters: LoRA adapters loaded while serving; a restart drops them.
    """

    name: str
    release: str
    ledger: str = ""
    host: str
    address: str
    runtime: RuntimeName
    identity: str = ""
    endpoint: str = ""
    base_path: str = OPENAI
    role: Role = Role.LEADER
    replica: int = 0
    adapters: tuple[Pin, ...] = ()

    @property
    def serves(self) -> bool:
        """Whether it answers requests for its replica; followers do not."""
        return self.role == Role.LEADER

    @property
    def speaks_openai(self) -> bool:
        """Whether it accepts OpenAI-style requests, which gateways and chats send."""
        return self.base_path == OPENAI

    @property
    def url(self) -> str:
        """The URL for clients: the endpoint and the path of its interface."""
        return f"{self.endpoint}{self.base_path}"


def serving(workloads: Iterable[Workload]) -> tuple[Workload, ...]:
    """The workloads that answer requests: one of each replica."""
    return tuple(workload for workload in workloads if workload.serves)
