"""A request to check against a policy, and its violations."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from moorage.common.failures import Cause, Failure
from moorage.common.printable import clipped
from moorage.common.redaction import Redactor
from moorage.common.values import Value
from moorage.inventory.fleet import Fleet
from moorage.placement.placement import Placement
from moorage.spec import ModelSpec


class Channel(StrEnum):
    """How a spec was submitted: by the command line, or through Prefect's API."""

    CLI = "cli"
    API = "api"


class Submission(Value):
    """How the spec of a release was submitted. Older records count as from the command line.

    Attributes:
        channel: A redeploy, a rollback or a reconcile does not change it.
        owner: The owner whose quota includes its replicas and accelerators.
    """

    channel: Channel = Channel.CLI
    owner: str = ""


Folders = tuple[tuple[str, str], ...]
"""Fields with a `file://` source, each with its folder, with links resolved."""


class Usage(Value):
    """Numbers of replicas and accelerators."""

    replicas: int = 0
    accelerators: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            replicas=self.replicas + other.replicas,
            accelerators=self.accelerators + other.accelerators,
        )


class Request(Value):
    """A spec, its submission, and the facts that a policy checks.

    Attributes:
        applied_from: Set of files that it claims to come from.
        folders: Its `file://` sources.
        roots: The folders of `file_roots`, with links resolved.
        variables: Names in `secrets` that are environment variables of this process.
        others: Usage of the owner's other models.
    """

    spec: ModelSpec
    submission: Submission
    fleet: Fleet = Fleet.defaults()
    applied_from: str = ""
    folders: Folders = ()
    roots: tuple[str, ...] = ()
    variables: frozenset[str] = frozenset()
    others: Usage = Usage.defaults()


def usage_of(spec: ModelSpec, placement: Placement | None = None) -> Usage:
    """Usage of a model: of its placement, else the least that its spec requests."""
    scaling = spec.engine.application.autoscaling if spec.engine.application else None
    replicas = scaling.max_replicas if scaling else spec.replicas
    if placement is None or not placement.fits:
        return Usage(replicas=replicas, accelerators=_least(spec, replicas))
    if spec.placement.cluster:
        seat = placement.seats[0]
        each = seat.tensor * seat.pipeline
        return Usage(replicas=replicas, accelerators=max(_least(spec, replicas), each * replicas))
    held = {(seat.host, index) for seat in placement.seats for index in seat.accelerators}
    return Usage(replicas=replicas, accelerators=len(held))


def _least(spec: ModelSpec, replicas: int) -> int:
    wanted = spec.placement.accelerators
    if isinstance(wanted, int):
        return wanted * replicas
    return 0 if wanted == "auto" else len(wanted)


LONGEST = 80
PLAIN = Redactor({})


class Violation(Value):
    """One part of a request that a policy does not allow.

    Attributes:
        rule: Path of the rule in the policy, such as `api.commands`.
        field: Path of the field of the spec, or the name of the run's parameter.
        file: File of the rule, or `the default policy`.
    """

    rule: str
    field: str
    found: str
    allowed: str
    file: str

    def __str__(self) -> str:
        return (
            f"{self.field}: found {self.found}; `{self.rule}` of {self.file} allows {self.allowed}"
        )


class PolicyRefused(Failure):
    """A policy does not allow a run; `violations` has the reasons."""

    def __init__(self, violations: Sequence[Violation]) -> None:
        super().__init__(Cause.POLICY_REFUSED, "\n".join(map(str, violations)))
        self.violations = tuple(violations)

    def __reduce__(self) -> tuple[object, ...]:
        return PolicyRefused, (self.violations,)

    @property
    def content(self) -> dict[str, Any]:
        """The violations, for programs."""
        return {"violations": self.violations}


def excerpt(found: object) -> str:
    """A value as a short text for a message, without any text that looks like a secret."""
    return clipped(PLAIN(repr(found)), LONGEST)
