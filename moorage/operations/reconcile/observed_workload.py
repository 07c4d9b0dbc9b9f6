"""Places, which are runtimes of hosts, and the workloads observed there."""

from datetime import datetime

from moorage.common.values import Value
from moorage.engines.workload import Workload
from moorage.spec import RuntimeName


class Place(Value):
    """A runtime on a host."""

    host: str
    address: str
    runtime: RuntimeName


def place_of(workload: Workload) -> Place:
    """The place where a workload runs."""
    return Place(host=workload.host, address=workload.address, runtime=workload.runtime)


class ObservedWorkload(Value):
    """A container or process on a host that has this ledger's labels, or is a helper.

    Attributes:
        identity: Container id, or `pid@start-time`.
        release: Its release; empty for a helper.
        since: Time of its creation.
        helper: Purpose of a helper container; empty = not a helper.
        fresh: Whether it was created but never started.
    """

    name: str
    identity: str
    release: str = ""
    model: str = ""
    running: bool
    state: str
    since: datetime
    helper: str = ""
    fresh: bool = False
