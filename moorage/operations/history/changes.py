"""The differences between two releases: fields of the spec, flags and variables."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from moorage.common.values import Origin, Value
from moorage.engines.labels import LABEL_REPLICA, LABEL_ROLE
from moorage.engines.launch import ContainerSpec, LaunchPlan
from moorage.spec import ModelSpec
from moorage.spec.tokenize import is_option

HIDDEN = "(hidden)"

_SECRET_NAME = re.compile(r"(?:^|[-_.])(?:key|token|password|secret)$", re.IGNORECASE)
"""Options whose value is hidden, in case a command line contains a secret."""


class Change(Value):
    """A difference between two releases in a field, flag, variable or figure.

    Attributes:
        before: Value in the old release; None = not set. Likewise `after` in the new one.
        where: Containers with this difference, such as `r0 leader`; empty = all.
        ratio: `after` divided by `before`, for a figure of both releases.
    """

    what: str
    before: str | None = None
    after: str | None = None
    origin_before: Origin | None = None
    origin_after: Origin | None = None
    where: tuple[str, ...] = ()
    ratio: float | None = None


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Change, ...]:
    """The differences between two sets of facts, in the order of `after`, then of `before`."""
    return tuple(
        Change(what=name, before=before.get(name), after=after.get(name))
        for name in dict.fromkeys((*after, *before))
        if before.get(name) != after.get(name)
    )


def written(tokens: Sequence[str]) -> str:
    """The words of a command line, without the values of options that are named like a secret."""
    shown, hides = [], False
    for token in tokens:
        name, equals, _ = token.partition("=")
        if is_option(token):
            tells = bool(_SECRET_NAME.search(name))
            shown.append(f"{name}={HIDDEN}" if tells and equals else token)
            hides = tells and not equals
        else:
            shown.append(HIDDEN if hides else token)
            hides = False
    return " ".join(shown)


VARIABLES = "engine.env."
"""Fields whose values are hidden, since a variable may be private."""

VALUE, OTHER_VALUE = "(a value)", "(another value)"


def spec_changes(before: ModelSpec, after: ModelSpec) -> tuple[Change, ...]:
    """Fields that differ, by path, with their effective values, including defaults."""
    old, new = (dict(_leaves(spec.model_dump(mode="json"), "")) for spec in (before, after))
    return tuple(
        _hide_values(change) if change.what.startswith(VARIABLES) else change
        for change in changes(old, new)
    )


def _hide_values(change: Change, shown: str = "") -> Change:
    """Hide both values, except those that begin with `shown`."""
    before, after = (
        text if text is None or (shown and text.startswith(shown)) else VALUE
        for text in (change.before, change.after)
    )
    if before == after == VALUE:
        after = OTHER_VALUE
    return change.model_copy(update={"before": before, "after": after})


def _leaves(content: Any, path: str) -> Iterator[tuple[str, str]]:
    """Each non-empty field by its path; items of a list of objects by name, else by index."""
    if isinstance(content, dict):
        for name, value in content.items():
            yield from _leaves(value, f"{path}.{name}" if path else name)
    elif isinstance(content, list) and content and isinstance(content[0], dict):
        for index, value in enumerate(content):
            yield from _leaves(value, f"{path}[{value.get('name', index)}]")
    elif isinstance(content, list) and content:
        # One entry of `engine.args` may be an option with its value.
        yield path, written([word for entry in content for word in str(entry).split()])
    elif content is not None and content not in ([], ""):
        yield path, content if isinstance(content, str) else json.dumps(content)


PROGRAM = "(program)"
"""The words before the first option: the program, its command and the model."""

Stated = tuple[str, Origin]
Seat = tuple[str, str]


def flag_changes(before: LaunchPlan | None, after: LaunchPlan | None) -> tuple[Change, ...]:
    """Options that were added or removed, or have another value."""
    return _changes(before, after, _flags)


def variable_changes(before: LaunchPlan | None, after: LaunchPlan | None) -> tuple[Change, ...]:
    """Variables that were added or removed, or have another value; values are hidden."""
    found = _changes(before, after, _variables)
    return tuple(_hide_values(change, shown="secret ") for change in found)


def by_seat(plan: LaunchPlan | None) -> dict[Seat, ContainerSpec]:
    """The containers of a plan by replica and role; followers are numbered."""
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
    """Compare containers of the same seat, and a container of a new seat with the first old one."""
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
        was, origin_before = before.get(name, (None, None))
        now, origin_after = after.get(name, (None, None))
        if was != now:
            origins = {"origin_before": origin_before, "origin_after": origin_after}
            yield Change(what=name, before=was, after=now, **origins)


def _flags(spec: ContainerSpec) -> dict[str, Stated]:
    """Each option with all its values as one text, also if it is given twice."""
    found: dict[str, tuple[list[str], Origin]] = {}
    name = PROGRAM
    for flag in spec.command:
        for token in flag.tokens:
            values = [token]
            if is_option(token):
                name, equals, value = token.partition("=")
                values = [value] if equals else []
            found.setdefault(name, ([], flag.origin))[0].extend(values)
    return {name: (_value(name, values), origin) for name, (values, origin) in found.items()}


def _value(name: str, values: list[str]) -> str:
    shown = written([name, *values]) if is_option(name) else " ".join(values)
    return shown.removeprefix(name).strip()


def _variables(spec: ContainerSpec) -> dict[str, Stated]:
    return {
        one.name: (f"secret {one.secret}" if one.secret else f"={one.value}", one.origin)
        for one in spec.environment
    }
