"""A runtime of a host, where engines run, and what is seen there."""

from datetime import datetime

from moorage.common.values import Value
from moorage.engines.workload import Workload
from moorage.spec import RuntimeName


class Place(Value):
    """A runtime of a host, where engines run."""

    host: str
    address: str
    runtime: RuntimeName


def place_of(workload: Workload) -> Place:
    """Where a workload runs."""
    return Place(host=workload.host, address=workload.address, runtime=workload.runtime)


class ObservedWorkload(Value):
    """A container or process on a host that is labelled as this ledger's, or is a helper.

    Attributes:
        identity: Container id, or `pid@start-time`.
        release: Empty for a helper.
        since: When it was created.
        helper: What a helper container is for; empty = it is an engine's.
        fresh: Whether it was created and never started.
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
