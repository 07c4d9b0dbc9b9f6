"""Rollback to an earlier release: its selection, its pinned spec, and its plan.

A recorded plan changes only where necessary. Two plans made with today's rules show where: one for
the earlier release in its old place, one for the new release in its new place. Values that are
equal in both stay as recorded.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from moorage.common.failures import Cause, Failure
from moorage.common.units import counted
from moorage.engines.flags import Flag
from moorage.engines.launch import ContainerSpec, LaunchPlan
from moorage.inventory.model_store import is_local
from moorage.inventory.snapshot import FleetSnapshot, Program
from moorage.models.pin import AssetRole
from moorage.models.source import ResolvedModel
from moorage.operations.history.changes import by_seat
from moorage.releases.release import Release
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import DEPLOYED
from moorage.spec import ModelSpec, RuntimeName
from moorage.spec.tokenize import is_option


def one_of(text: str, ids: Sequence[str]) -> str:
    """The id that equals the text, else the only id that begins with it.

    Raises:
        Failure: `UNKNOWN_RELEASE` when no id or several ids begin with it.
    """
    found = [text] if text in ids else [one for one in ids if one.startswith(text)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise Failure(Cause.UNKNOWN_RELEASE, text)
    names = ", ".join(found[:10])
    raise Failure(
        Cause.UNKNOWN_RELEASE,
        f"{len(found)} releases begin with {text}",
        suggestion=f"Name one of them: {names}{' and others' if len(found) > 10 else ''}.",
    )


def last_two(name: str, rows: Sequence[ReleaseRow]) -> tuple[Release, Release]:
    """The two newest releases of a model that have a record, the older one first.

    `rows` are its releases, newest first.

    Raises:
        Failure: `UNKNOWN_RELEASE` when fewer than two have a record, or one of the two cannot be
            read.
    """
    found = [row for row in rows if row.release or row.foreign_record]
    if len(found) < 2:
        detail = f"{name} has {counted(len(found), 'release')} with a record; two are needed"
        advice = f"`moorage history {name}` lists them; deploy it again for a second one."
        raise Failure(Cause.UNKNOWN_RELEASE, detail, suggestion=advice)
    newer, older = (_readable(row, Cause.UNKNOWN_RELEASE, TWO_OTHERS) for row in found[:2])
    return older, newer


def rollback_target(name: str, rows: Sequence[ReleaseRow], to: str = "") -> Release:
    """The release to roll back to, of all releases of a model, newest first.

    `to` is an id or its prefix; empty = the latest release that ran before the one that serves or
    sleeps, and ran something else, or, if none does, the latest that ran.

    Raises:
        Failure: `CANNOT_ROLL_BACK` when it never ran, is of another model, or does not exist, or
            another version of moorage wrote its record in a form that this one cannot read;
            `UNKNOWN_RELEASE` when the model is not known, or several ids begin with `to`.
    """
    if not rows:
        raise Failure(Cause.UNKNOWN_RELEASE, f"no model has the name {name}")
    if to:
        return _named(name, rows, to)
    current = next((row for row in rows if row.state in DEPLOYED), None)
    earlier = [row for row in rows if _ran(row) and (not current or row.number < current.number)]
    if not earlier:
        raise Failure(Cause.CANNOT_ROLL_BACK, f"no earlier release of {name} ever ran")
    # A repair deploys what served before, so going back to that would change nothing.
    runs = current and _content(current)
    found = next((row for row in earlier if not runs or _content(row) != runs), None)
    if found is None:
        same = ", ".join(row.id for row in earlier[:10])
        detail = f"every earlier release of {name} ran what serves now: {same}"
        raise Failure(Cause.CANNOT_ROLL_BACK, detail, suggestion="Name one with `--to`.")
    return _readable(found, Cause.CANNOT_ROLL_BACK, ANOTHER)


def _content(row: ReleaseRow) -> object:
    """What a release runs, wherever it is placed; None if its record cannot be read."""
    release, plan = row.release, row.plan
    if release is None or plan is None:
        return None
    image = release.image and (release.image.digest or release.image.identity)
    sources = (release.revision, release.companions, release.pattern)
    return release.spec_digest, sources, image, plan.engine_version


def _named(name: str, rows: Sequence[ReleaseRow], to: str) -> Release:
    ids = [row.id for row in rows]
    if not any(one.startswith(to) for one in ids):
        raise Failure(Cause.CANNOT_ROLL_BACK, f"{name} has no release {to}")
    chosen = one_of(to, ids)
    row = next(row for row in rows if row.id == chosen)
    if not _ran(row):
        why = row.cause or "it has no record"
        raise Failure(Cause.CANNOT_ROLL_BACK, f"{row.id} never ran ({row.state}: {why})")
    return _readable(row, Cause.CANNOT_ROLL_BACK, ANOTHER)


def _ran(row: ReleaseRow) -> bool:
    if row.release:
        return row.release.ran
    return bool(row.foreign_record and not row.foreign_record.get("failure"))


OF_FILES = {"--mmproj"}
"""Options that name a file of the model. The choice of one may differ from what ran."""

TWO_OTHERS = "two others: `moorage diff A B`"
ANOTHER = "another release with `--to`"


def _readable(row: ReleaseRow, cause: Cause, instead: str) -> Release:
    """The record of a release that has one; skipped in silence, an older release would be meant."""
    if row.release is None:
        detail = f"another version of moorage wrote the record of {row.id}"
        raise Failure(cause, detail, suggestion=f"Use that version, or name {instead}.")
    return row.release


def pinned_spec(release: Release) -> ModelSpec:
    """The spec of a release, pinned to the exact revisions and files that it ran."""
    spec = release.spec
    adapters = {
        pin.name: pin.revision for pin in release.companions if pin.role == AssetRole.ADAPTER
    }
    lora = tuple(
        adapter.model_copy(update=_pin(adapter.source, adapters.get(adapter.name)))
        for adapter in spec.lora
    )
    draft = spec.speculative
    if draft and draft.model:
        drafts = (pin.revision for pin in release.companions if pin.role == AssetRole.DRAFT)
        draft = draft.model_copy(update=_pin(draft.model, next(drafts, None)))
    own = _pin(spec.source, release.revision)
    changes = {**own, "files": release.pattern, "lora": lora, "speculative": draft}
    return spec.model_copy(update=changes)


def require_same(release: Release, found: ResolvedModel) -> None:
    """Check that the resolved model has the revisions that a release ran.

    Raises:
        Failure: `SOURCE_MISSING` when a source, such as a directory, has changed since.
    """
    current = {(pin.role, pin.name): pin.revision for pin in found.pins}
    rows = [(release.spec.source, release.revision, found.revision)]
    rows += [
        (pin.source, pin.revision, current.get((pin.role, pin.name), ""))
        for pin in release.companions
    ]
    for source, before, now in rows:
        if before != now:
            raise changed_source(release, source, before, now)


def changed_source(release: Release, source: str, before: str, now: str) -> Failure:
    """The failure for a source that has another revision (`now`) than the release ran."""
    return Failure(
        Cause.SOURCE_MISSING,
        f"{source}: {release.id} ran revision {before}; the source now has {now or 'none'}",
        suggestion="Restore the files of that revision, or deploy the current ones.",
    )


def _pin(source: str, revision: str | None) -> dict[str, str]:
    """The revision of a source, if it can be pinned: a directory has only its current files."""
    return {"revision": revision} if revision and not is_local(source) else {}


T = TypeVar("T")

FRESH = {"name", "labels", "host", "address", "bind", "port", "devices", "awaits"}
"""Fields that identify the container and its host, taken from the fresh plan."""


def replanned(
    recorded: LaunchPlan, then: LaunchPlan | None, fresh: LaunchPlan, note: str = ""
) -> LaunchPlan:
    """A recorded plan adapted to a new release and its place, with `note` as a further warning.

    Args:
        recorded: The plan that ran.
        then: Today's plan for the old release in its old place; None = the place is gone, so the
            fresh plan is used.
        fresh: Today's plan for the new release.
    """
    notes = (*fresh.warnings, *([note] if note else []))
    if then is None:
        return fresh.model_copy(update={"warnings": notes})
    old, base = by_seat(recorded), by_seat(then)
    containers = tuple(
        _container(old[seat], base[seat], spec) if seat in old and seat in base else spec
        for seat, spec in by_seat(fresh).items()
    )
    kept = {"containers": containers, "checked_against": recorded.checked_against}
    return fresh.model_copy(update={**kept, "warnings": notes})


def with_programs_of(plan: LaunchPlan, fleet: FleetSnapshot) -> FleetSnapshot:
    """A fleet with the programs that a plan started as processes, whatever is installed now.

    Program and version are of the place: where they differ, a rollback takes today's.
    """
    started = {
        one.host: Program(
            engine=plan.engine, path=one.command[0].tokens[0], version=plan.engine_version
        )
        for one in plan.containers
        if one.runtime == RuntimeName.PROCESS and not one.command[0].written
    }
    hosts = tuple(
        host.model_copy(update={"programs": (started[host.name], *host.programs)})
        if host.name in started
        else host
        for host in fleet.hosts
    )
    return fleet.model_copy(update={"hosts": hosts})


def _container(old: ContainerSpec, base: ContainerSpec, fresh: ContainerSpec) -> ContainerSpec:
    # Old mount targets get their current sources, since files may have been staged again.
    targets = {mount.target for mount in old.mounts}
    others = [mount for mount in base.mounts if mount.target not in targets]
    variables = (old.environment, base.environment, fresh.environment)
    update: dict[str, Any] = {
        "command": _merged(old.command, base.command, fresh.command, _option),
        "environment": _merged(*variables, lambda one: one.name),
        "mounts": _merged(old.mounts, others, fresh.mounts, lambda one: one.target),
    }
    for name in ContainerSpec.model_fields:
        if name not in update and name not in FRESH:
            same = getattr(base, name) == getattr(fresh, name)
            update[name] = getattr(old if same else fresh, name)
    return fresh.model_copy(update=update)


def _merged(
    old: Sequence[T], base: Sequence[T], fresh: Sequence[T], key: Callable[[T], Hashable]
) -> tuple[T, ...]:
    """The old entries in order, replaced by those of fresh where base and fresh differ."""
    was, now = _by_key(base, key), _by_key(fresh, key)
    merged: list[T] = []
    seen = set()
    for entry in old:
        name = key(entry)
        if was.get(name) == now.get(name) and name not in OF_FILES:
            merged.append(entry)
        elif name not in seen:
            merged += now.get(name, [])
        seen.add(name)
    for name, entries in now.items():
        if name not in seen and was.get(name) != entries:
            merged += entries
    return tuple(merged)


def _by_key(entries: Sequence[T], key: Callable[[T], Hashable]) -> dict[Hashable, list[T]]:
    found: dict[Hashable, list[T]] = {}
    for entry in entries:
        found.setdefault(key(entry), []).append(entry)
    return found


def _option(flag: Flag) -> Hashable:
    """The option that a flag sets; `program` for words before the first option."""
    first = flag.tokens[0] if flag.tokens else ""
    if flag.written:
        return f"written {flag.reason}"
    return first.partition("=")[0] if is_option(first) else "program"
