"""What differs between two plans: flags with who gave them, and variables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from moorage.common.values import Origin
from moorage.engines.launch import LABEL_REPLICA, LABEL_ROLE, ContainerSpec, LaunchPlan
from moorage.operations.history.change import Change, written
from moorage.spec.tokenize import is_option

PROGRAM = "(program)"
"""What stands before the first option: the program, its command and the model."""

Stated = tuple[str, Origin]
Seat = tuple[str, str]


def flag_changes(before: LaunchPlan | None, after: LaunchPlan | None) -> tuple[Change, ...]:
    """Options that were added, removed, or have another value."""
    return _changes(before, after, _flags)


def variable_changes(before: LaunchPlan | None, after: LaunchPlan | None) -> tuple[Change, ...]:
    """Variables that were added, removed, or have another value; values are not shown."""
    return tuple(map(_named_only, _changes(before, after, _variables)))


def by_seat(plan: LaunchPlan | None) -> dict[Seat, ContainerSpec]:
    """The containers of a plan by replica and role; of several followers each for itself."""
    found: dict[Seat, ContainerSpec] = {}
    for spec in plan.containers if plan else ():
        replica, role = spec.labels[LABEL_REPLICA], spec.labels[LABEL_ROLE]
        count = sum(seat[0] == replica and seat[1].split("#")[0] == role for seat in found)
        found[replica, f"{role}#{count}" if count else role] = spec
    return found


def _changes(
    before: LaunchPlan | None,
    after: LaunchPlan | None,
    read: Callable[[ContainerSpec], Mapping[str, Stated]],
) -> tuple[Change, ...]:
    """Containers are held against those of the same seat; one that is new against the first."""
    old, new = by_seat(before), by_seat(after)
    found: dict[Change, list[str]] = {}
    pairs = [(seat, old.get(seat) or next(iter(old.values()), None), new[seat]) for seat in new]
    for seat, was, now in pairs:
        for change in _between(read(was) if was else {}, read(now)):
            found.setdefault(change, []).append(f"r{seat[0]} {seat[1]}")
    return tuple(
        change.model_copy(update={"where": () if len(where) == len(pairs) else tuple(where)})
        for change, where in found.items()
    )


def _between(before: Mapping[str, Stated], after: Mapping[str, Stated]) -> Iterable[Change]:
    for name in dict.fromkeys((*after, *before)):
        was, now = before.get(name), after.get(name)
        if (was and was[0]) != (now and now[0]):
            yield Change(
                what=name,
                before=was[0] if was else None,
                after=now[0] if now else None,
                origin_before=was[1] if was else None,
                origin_after=now[1] if now else None,
            )


def _flags(spec: ContainerSpec) -> dict[str, Stated]:
    """Each option with its values as one text; of one that is given twice, both."""
    found: dict[str, tuple[list[str], Origin]] = {}
    name = PROGRAM
    for flag in spec.command:
        for token in flag.tokens:
            if is_option(token):
                name, equals, value = token.partition("=")
                found.setdefault(name, ([], flag.origin))
                values = [value] if equals else []
            else:
                found.setdefault(name, ([], flag.origin))
                values = [token]
            found[name][0].extend(values)
    return {name: (_value(name, values), origin) for name, (values, origin) in found.items()}


def _value(name: str, values: list[str]) -> str:
    shown = written([name, *values]) if is_option(name) else " ".join(values)
    return shown.removeprefix(name).strip()


def _variables(spec: ContainerSpec) -> dict[str, Stated]:
    return {
        one.name: (f"secret {one.secret}" if one.secret else f"={one.value}", one.origin)
        for one in spec.environment
    }


def _named_only(change: Change) -> Change:
    before, after = (_shown(text) for text in (change.before, change.after))
    if before == after == "(a value)":
        after = "(another value)"
    return change.model_copy(update={"before": before, "after": after})


def _shown(text: str | None) -> str | None:
    return "(a value)" if text is not None and text.startswith("=") else text
