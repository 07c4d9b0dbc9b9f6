"""Models in the hosts' stores, and the choice of models to remove."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum

from moorage.common.values import Value
from moorage.inventory.model_store import SELECTED, folder_name, local_path, selection
from moorage.models.assets import assets_of
from moorage.models.pin import AssetRole
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import SERVING
from moorage.spec import ModelSpec
from moorage.spec.patterns import AUTO_FILES


class StoredState(StrEnum):
    """State of a directory in a store; an unknown one is not moorage's."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    GOING = "going"
    UNKNOWN = "unknown"


class Stored(Value):
    """One revision (commit, digest or fingerprint) of one model in one store.

    Attributes:
        path: Path of its directory in the store.
        source: Its source; for an incomplete model, the name of its folder.
        used: When it was last deployed, in seconds since the epoch.
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
    """A model that a release needs, as the folder of its source.

    An empty revision, or empty hosts, are not known yet and match any. With `any_files` its files
    are not known yet, so that every selection of the source matches.

    Attributes:
        path: Where the release reads a `file://` source on this machine; empty = it is another.
    """

    release: str
    folder: str
    path: str = ""
    revision: str = ""
    hosts: frozenset[str] = frozenset()
    any_files: bool = False

    def concerns(self, stored: Stored, uses: Callable[[str], bool]) -> bool:
        """Whether it needs a model of the store that those hosts use for which `uses` is true."""
        here = not self.hosts or any(map(uses, self.hosts))
        revision = self.revision in ("", stored.revision)
        folder = "".join(stored.path.split("/")[1:2])
        of_source = self.any_files and folder.startswith(f"{self.folder}{SELECTED}")
        return here and revision and (of_source or folder == self.folder)


def needs(rows: Iterable[ReleaseRow], specs: Mapping[str, ModelSpec]) -> tuple[Need, ...]:
    """The models that these releases need; `specs` has the spec of each, by release id."""
    return tuple(need for row in rows for need in _needs(row, specs[row.id]))


def with_shared_users(
    stored: Sequence[Stored], needs: Sequence[Need], silent: Collection[str] = ()
) -> tuple[Stored, ...]:
    """The models of all stores, each with the users on hosts that have it in the same directory.

    The stores of hosts that did not answer (`silent`) may be any of these directories.
    """
    users: dict[tuple[str, float], list[str]] = {}
    for one in stored:
        users.setdefault(_directory(one), []).extend(one.used_by)
    found = []
    for one in stored:
        there = (need.release for need in needs if need.concerns(one, silent.__contains__))
        used_by = tuple(dict.fromkeys((*users[_directory(one)], *there)))
        found.append(one.model_copy(update={"used_by": used_by}))
    return tuple(found)


def sharing_hosts(models: Iterable[Stored], stored: Iterable[Stored]) -> frozenset[str]:
    """The hosts that have one of the models in the same directory, out of all stored models."""
    directories = set(map(_directory, models))
    return frozenset(one.host for one in stored if _directory(one) in directories)


def shared_needs(needs: Iterable[Need], host: str, sharing: Collection[str]) -> tuple[Need, ...]:
    """The needs, where those of the hosts that share the store of `host` are needs of `host`."""
    return tuple(
        need.model_copy(update={"hosts": need.hosts | {host}})
        if need.hosts.intersection(sharing)
        else need
        for need in needs
    )


def _directory(one: Stored) -> tuple[str, float]:
    """Equal for a directory that several hosts list, as on NFS; copies differ in their times.

    The time of an unfinished download changes, but its name has the key of one host.
    """
    return one.path, 0 if one.state == StoredState.PARTIAL else one.used


def to_prune(
    stored: Iterable[Stored], *, keep: int | None, older_than: float | None, now: float
) -> tuple[Stored, ...]:
    """The models to remove, the least recently used first: none in use, no unknown directory.

    Args:
        keep: Bytes that each host may keep; None = all.
        older_than: Seconds without use after which a model is removed in any case; None = never.
        now: Seconds since the epoch.
    """
    pruned: list[Stored] = []
    oldest_first = sorted(stored, key=lambda one: one.used)
    left = Counter[str]()
    for one in oldest_first:
        left[one.host] += one.bytes
    for one in oldest_first:
        too_old = older_than is not None and now - one.used > older_than
        too_much = keep is not None and left[one.host] > keep
        may_go = one.state != StoredState.UNKNOWN and not one.used_by
        if may_go and (too_old or too_much or one.state == StoredState.GOING):
            pruned.append(one)
            left[one.host] -= one.bytes
    return tuple(pruned)


def _needs(row: ReleaseRow, spec: ModelSpec) -> Iterable[Need]:
    if row.state not in SERVING or row.release is None:
        chosen_later = spec.files == AUTO_FILES
        return [
            Need(
                release=row.id,
                folder=folder_name(selection(one.source, one.files)),
                path=local_path(one.source),
                any_files=chosen_later and one.role == AssetRole.MODEL,
            )
            for one in assets_of(spec)
        ]
    hosts = frozenset(workload.host for workload in row.workloads)
    pins = [(pin.source, pin.revision) for pin in row.release.companions]
    return [
        Need(
            release=row.id,
            folder=folder_name(source),
            path=local_path(source),
            revision=revision,
            hosts=hosts,
        )
        for source, revision in [(selection(spec.source, row.release.pattern), row.revision), *pins]
    ]
