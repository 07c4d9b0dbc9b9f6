"""Which models are meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from moorage.common.failures import Cause, Failure
from moorage.spec import ModelSpec

NAMED = 3
"""So many models are named one by one."""


def chosen(
    specs: Iterable[ModelSpec], names: Sequence[str], labels: Mapping[str, str]
) -> tuple[ModelSpec, ...]:
    """The models that are meant, in the order of their names.

    Args:
        specs: Every model there is.
        names: Names, or patterns with `*`, `?` and `[...]`; none = all.
        labels: Only models that carry all of them; a value may be a pattern too.

    Raises:
        Failure: `UNKNOWN_RELEASE` for a name without a pattern that no model has.
    """
    found = {spec.name: spec for spec in specs}
    unknown = [name for name in names if not _is_pattern(name) and name not in found]
    if unknown:
        raise Failure(Cause.UNKNOWN_RELEASE, f"nothing serves {', '.join(unknown)}")
    return tuple(
        spec
        for name, spec in sorted(found.items())
        if (not names or any(fnmatchcase(name, pattern) for pattern in names))
        and carries(spec.labels, labels)
    )


def meant(names: Sequence[str], labels: Mapping[str, str], files: str) -> str:
    """Which models, in a few words for the name of a run."""
    told = ", ".join(names[:NAMED]) if names else "" if labels else "all"
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    carried = ", ".join(f"{name}={value}" for name, value in sorted(labels.items()))
    origin = f"from {files}" if files else ""
    return " ".join(filter(None, (told + more, f"with {carried}" if labels else "", origin)))


def carries(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether all wanted labels are among these."""
    return all(
        name in labels and fnmatchcase(labels[name], pattern) for name, pattern in wanted.items()
    )


def _is_pattern(name: str) -> bool:
    return any(sign in name for sign in "*?[")
