"""The plan of an earlier release for a new one: what was recorded, and only what must differ.

What must differ is found by planning twice with the rules of today: as the earlier release, where
it ran, and as the new one, where it will run. Whatever is equal in both stays as it was recorded,
though the rules of today would make something else of it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from moorage.engines.launch import ContainerSpec, Flag, LaunchPlan, Mount
from moorage.operations.history.containers import by_seat
from moorage.spec.tokenize import is_option

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
