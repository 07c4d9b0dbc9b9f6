"""Going back to an earlier release: which one, its pinned spec, and its plan.

A recorded plan changes only where it must. Planning twice with today's rules shows where: as the
earlier release, where it ran, and as the new one, where it will run. Whatever is equal in both
stays as it was recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from moorage.common.failures import Cause, Failure
from moorage.engines.flags import Flag
from moorage.engines.launch import ContainerSpec, LaunchPlan, Mount
from moorage.models.assets import AssetRole, Pin
from moorage.models.source import ResolvedModel
from moorage.operations.history.changes import by_seat
from moorage.releases.release import Release, ReleaseRow
from moorage.releases.states import SERVING
from moorage.spec import ModelSpec
from moorage.spec.tokenize import is_option


def one_of(text: str, ids: Sequence[str]) -> str:
    """The id that is meant: itself, or the only one that begins so.

    Raises:
        Failure: `UNKNOWN_RELEASE` when none begins so, or several do.
    """
    found = [text] if text in ids else [one for one in ids if one.startswith(text)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise Failure(Cause.UNKNOWN_RELEASE, text)
    names = ", ".join(found[:10])
    raise Failure(
        Cause.UNKNOWN_RELEASE,
        f"{text}: {len(found)} releases begin so",
        suggestion=f"Name one of them: {names}{' and others' if len(found) > 10 else ''}.",
    )


def last_two(name: str, rows: Sequence[ReleaseRow]) -> tuple[Release, Release]:
    """The two newest releases of a model that have a record, the older one first.

    Args:
        name: The model.
        rows: Its releases, newest first.

    Raises:
        Failure: `UNKNOWN_RELEASE` when there are not two.
    """
    found = [row.release for row in rows if row.release]
    if len(found) < 2:
        detail = f"{name} has {len(found)} releases with a record; two are needed"
        raise Failure(Cause.UNKNOWN_RELEASE, detail)
    return found[1], found[0]


def rollback_target(name: str, rows: Sequence[ReleaseRow], to: str = "") -> Release:
    """The release to go back to: the one named, else the last one before what serves that ran.

    Where nothing serves the name, it is the last one that ran.

    Args:
        name: The model.
        rows: Its releases, newest first.
        to: Id of one of them, or how it begins; empty = the one before.

    Raises:
        Failure: `CANNOT_ROLL_BACK` when it never ran, is of another model, or there is none;
            `UNKNOWN_RELEASE` when the model is not known.
    """
    if not rows:
        raise Failure(Cause.UNKNOWN_RELEASE, f"no model is named {name}")
    if to:
        return _named(name, rows, to)
    serving = next((row.number for row in rows if row.state in SERVING), None)
    earlier = (row for row in rows if serving is None or row.number < serving)
    found = next((row.release for row in earlier if row.release and row.release.ran), None)
    if found is None:
        raise Failure(Cause.CANNOT_ROLL_BACK, f"no earlier release of {name} ever ran")
    return found


def _named(name: str, rows: Sequence[ReleaseRow], to: str) -> Release:
    ids = [row.id for row in rows]
    if not any(one.startswith(to) for one in ids):
        raise Failure(Cause.CANNOT_ROLL_BACK, f"{to} is no release of {name}")
    chosen = one_of(to, ids)
    row = next(row for row in rows if row.id == chosen)
    if row.release is None or not row.release.ran:
        why = row.cause or "it has no record that can be read"
        raise Failure(Cause.CANNOT_ROLL_BACK, f"{row.id} never ran ({row.state}: {why})")
    return row.release


HUB = "hf://"
"""Only a hub keeps more than one revision; a directory is what it is now."""


def pinned_spec(release: Release) -> ModelSpec:
    """The spec of a release, with the exact revisions that it ran."""
    spec = release.spec
    lora = tuple(
        adapter.model_copy(
            update=_pin(
                adapter.source, _pinned(release.companions, AssetRole.ADAPTER, adapter.name)
            )
        )
        for adapter in spec.lora
    )
    draft = spec.speculative
    if draft and draft.model:
        pin = _pinned(release.companions, AssetRole.DRAFT)
        draft = draft.model_copy(update=_pin(draft.model, pin))
    own = _pin(spec.source, release.revision)
    return spec.model_copy(update={**own, "lora": lora, "speculative": draft})


def require_same(release: Release, found: ResolvedModel) -> None:
    """Check that what was found is what a release ran.

    Raises:
        Failure: `SOURCE_MISSING` when a directory has changed since.
    """
    there = {pin.name: pin.revision for pin in found.pins}
    wanted = {pin.name: pin for pin in release.companions}
    rows = [(release.spec.source, release.revision, found.revision)]
    rows += [(pin.source, pin.revision, there.get(name, "")) for name, pin in wanted.items()]
    for source, before, now in rows:
        if before != now:
            raise Failure(
                Cause.SOURCE_MISSING,
                f"{source}: {release.id} ran revision {before}, which is not there any more;"
                f" {now or 'nothing'} is",
                suggestion="Put the files back as they were, or deploy what is there now.",
            )


def _pin(source: str, revision: str | None) -> dict[str, str]:
    return {"revision": revision} if revision and source.startswith(HUB) else {}


def _pinned(pins: tuple[Pin, ...], role: AssetRole, name: str = "") -> str | None:
    return next((pin.revision for pin in pins if pin.role == role and name in ("", pin.name)), None)


T = TypeVar("T")

FRESH = {"name", "labels", "host", "address", "bind", "port", "devices", "awaits"}
"""Fields that say which container it is and how its host is reached, as that is now."""


def replanned(
    recorded: LaunchPlan, then: LaunchPlan | None, fresh: LaunchPlan, note: str = ""
) -> LaunchPlan:
    """A recorded plan with what a new release and its place demand.

    Args:
        recorded: What ran.
        then: What would be planned today for the release that ran, where it ran; None = that place
            is gone, and the fresh plan counts.
        fresh: What would be planned today for the new release.
        note: What a person should know; empty = nothing.
    """
    notes = (*fresh.warnings, *([note] if note else []))
    if then is None:
        return fresh.model_copy(update={"warnings": notes})
    old, base = by_seat(recorded), by_seat(then)
    containers = tuple(
        _container(old[seat], base[seat], spec) if seat in old and seat in base else spec
        for seat, spec in by_seat(fresh).items()
    )
    return fresh.model_copy(update={"containers": containers, "warnings": notes})


def _container(old: ContainerSpec, base: ContainerSpec, fresh: ContainerSpec) -> ContainerSpec:
    update: dict[str, Any] = {
        "command": _merged(old.command, base.command, fresh.command, _option),
        "environment": _merged(
            old.environment, base.environment, fresh.environment, lambda one: one.name
        ),
        "mounts": _mounts(old.mounts, base.mounts, fresh.mounts),
    }
    for name in ContainerSpec.model_fields:
        if name not in update and name not in FRESH:
            same = getattr(base, name) == getattr(fresh, name)
            update[name] = getattr(old if same else fresh, name)
    return fresh.model_copy(update=update)


def _mounts(
    old: Sequence[Mount], base: Sequence[Mount], fresh: Sequence[Mount]
) -> tuple[Mount, ...]:
    """What the engine saw, from where it lies now: files may have been staged anew."""
    seen = {mount.target for mount in old}
    others = [mount for mount in base if mount.target not in seen]
    return _merged(old, others, fresh, lambda one: one.target)


def _merged(
    old: Sequence[T], base: Sequence[T], fresh: Sequence[T], key: Callable[[T], Hashable]
) -> tuple[T, ...]:
    """The old entries in their order; what differs between base and fresh as it is in fresh."""
    was, now = _by_key(base, key), _by_key(fresh, key)
    merged: list[T] = []
    seen = set()
    for entry in old:
        name = key(entry)
        if was.get(name) == now.get(name):
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
    """What a flag decides about; the words before the first option are the program's."""
    first = flag.tokens[0] if flag.tokens else ""
    if flag.written:
        return f"written {flag.reason}"
    return first.partition("=")[0] if is_option(first) else "program"
