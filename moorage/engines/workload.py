"""What was started: a container, or a process, of a release."""

from collections.abc import Iterable

from moorage.common.values import Value
from moorage.models.pin import Pin
from moorage.placement.role import Role
from moorage.spec import RuntimeName

OPENAI = "/v1"
"""Where an interface like OpenAI's begins."""


class Workload(Value):
    """A container or process that was started; its name is that of its `ContainerSpec`.

    Attributes:
        identity: Container id, or `pid@start-time` of the process.
        endpoint: Base URL under which it answers, if it leads.
        base_path: Where its HTTP interface begins, below the endpoint.
        adapters: LoRA adapters that were loaded while it serves; a start drops them.
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
        """Whether it answers for its replica; followers do not."""
        return self.role == Role.LEADER

    @property
    def speaks_openai(self) -> bool:
        """Whether it takes requests as OpenAI's API does, as gateways and chats send them."""
        return self.base_path == OPENAI

    @property
    def url(self) -> str:
        """What clients are given: the endpoint and the path of its interface."""
        return f"{self.endpoint}{self.base_path}"


def serving(workloads: Iterable[Workload]) -> tuple[Workload, ...]:
    """Those that answer requests: one of each replica."""
    return tuple(workload for workload in workloads if workload.serves)
