"""What stores hold, and which of it may go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from moorage.common.values import Value
from moorage.inventory.model_store import folder_name
from moorage.models.assets import assets_of
from moorage.releases.release import ReleaseRow, ReleaseState
from moorage.spec import ModelSpec


class StoredState(StrEnum):
    """How much of a model is there."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    GOING = "going"
    UNKNOWN = "unknown"


class Stored(Value):
    """One revision of one model in one store.

    Attributes:
        host: Whose store it is.
        path: Its directory below the store.
        source: Where it is from; of what is not complete, the name of its folder.
        revision: Commit, digest or fingerprint.
        bytes: Size of all its files.
        used: When it was last deployed, in seconds since the epoch.
        state: How much of it is there.
        used_by: Releases, containers or downloads that need it.
    """

    host: str
    path: str
    source: str
    revision: str
    bytes: int
    used: float
    state: StoredState
    used_by: tuple[str, ...] = ()


class Need(Value):
    """A model that a release needs.

    Attributes:
        release: The release.
        folder: Folder of its source.
        revision: Which; empty = any: it is not known yet.
        hosts: Where; empty = anywhere: it is not known yet.
    """

    release: str
    folder: str
    revision: str = ""
    hosts: frozenset[str] = frozenset()

    def concerns(self, stored: Stored, *, anywhere: bool) -> bool:
        """Whether it needs something that is stored.

        Args:
            stored: What is stored.
            anywhere: Do not ask on which host: several may share the store.
        """
        here = anywhere or not self.hosts or stored.host in self.hosts
        revision = self.revision in ("", stored.revision)
        return here and revision and stored.path.split("/")[1:2] == [self.folder]


def needs(rows: Iterable[ReleaseRow], specs: Mapping[str, ModelSpec]) -> tuple[Need, ...]:
    """What releases that serve, start or stop need.

    Args:
        rows: Those releases.
        specs: Their specs, by release.
    """
    return tuple(need for row in rows for need in _needs(row, specs[row.id]))


def to_prune(
    stored: Iterable[Stored], *, keep: int | None, older_than: float | None, now: float
) -> tuple[Stored, ...]:
    """What may go: nothing that is used, and what was used longest ago first.

    Args:
        stored: All that is stored.
        keep: Bytes that each host may keep; None = it may keep all.
        older_than: What was not used for more seconds goes in any case; None = nothing does.
        now: Seconds since the epoch.
    """
    going: list[Stored] = []
    left: dict[str, int] = {}
    everything = sorted(stored, key=lambda one: one.used)
    for one in everything:
        left[one.host] = left.get(one.host, 0) + one.bytes
    for one in everything:
        too_old = older_than is not None and now - one.used > older_than
        too_much = keep is not None and left[one.host] > keep
        if not one.used_by and (too_old or too_much or one.state == StoredState.GOING):
            going.append(one)
            left[one.host] -= one.bytes
    return tuple(going)


def _needs(row: ReleaseRow, spec: ModelSpec) -> Iterable[Need]:
    serves = row.state == ReleaseState.RUNNING and row.release is not None
    hosts = frozenset(workload.host for workload in row.workloads) if serves else frozenset()
    if not serves or row.release is None:
        return [Need(release=row.id, folder=folder_name(one.source)) for one in assets_of(spec)]
    pins = [(pin.source, pin.revision) for pin in row.release.companions]
    return [
        Need(release=row.id, folder=folder_name(source), revision=revision, hosts=hosts)
        for source, revision in [(spec.source, row.revision), *pins]
    ]
