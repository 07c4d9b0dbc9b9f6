"""The models of a redeployment, its waves, and when it stops."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Annotated, TypeVar

from pydantic import Field

from moorage.common.failures import Cause, Failure
from moorage.spec import ModelSpec

NAMED = 3
"""Most models that the name of a run lists."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Models that a redeployment considers, and how it decides about each.

    Attributes:
        names: Models, or patterns with `*`, `?` and `[...]`; empty = all.
        labels: Labels that the models must all carry; values may be patterns.
        files: Folder of specs that replace the recorded ones; empty = none.
        by_policy: Whether the `redeploy` section of each model decides.
        force: Whether models without changes are redeployed, too.
    """

    names: Sequence[str] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    files: str = ""
    by_policy: bool = False
    force: bool = False

    def chosen(self, specs: Iterable[ModelSpec]) -> tuple[ModelSpec, ...]:
        """The selected models, in the order of their names.

        Raises `UNKNOWN_RELEASE` for a name, not a pattern, that none of the models has.
        """
        found = {spec.name: spec for spec in specs}
        unknown = [name for name in self.names if not set(name) & set("*?[") and name not in found]
        if unknown:
            detail = f"no model that runs or sleeps is named {', '.join(unknown)}"
            raise Failure(Cause.UNKNOWN_RELEASE, detail)
        return tuple(
            spec
            for name, spec in sorted(found.items())
            if (not self.names or any(fnmatchcase(name, pattern) for pattern in self.names))
            and carries(spec.labels, self.labels)
        )


def meant(names: Sequence[str], labels: Mapping[str, str], files: str) -> str:
    """The selection in a few words, for the name of a run."""
    listed = ", ".join(names[:NAMED]) if names else "" if labels else "all"
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    carried = ", ".join(f"{name}={value}" for name, value in sorted(labels.items()))
    origin = f"from {files}" if files else ""
    return " ".join(filter(None, (listed + more, f"with {carried}" if labels else "", origin)))


def carries(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether all wanted labels are among these."""
    return all(
        name in labels and fnmatchcase(labels[name], pattern) for name, pattern in wanted.items()
    )


T = TypeVar("T")

SHARE_PATTERN = r"(100|[1-9]?\d)%"
WAVE_PATTERN = rf"^([1-9]\d{{0,3}}|{SHARE_PATTERN})$"
STOP_PATTERN = rf"^(first|never|{SHARE_PATTERN})$"
PATTERNS_IN_WORDS = {
    WAVE_PATTERN: "a number such as 4, or a share such as 25%",
    STOP_PATTERN: "first, never, or a share such as 20%",
}

WaveSize = Annotated[str, Field(pattern=WAVE_PATTERN)]
"""A number of models such as 4, or a share of all models such as 25%."""

StopAt = Annotated[str, Field(pattern=STOP_PATTERN)]
"""`first` failure, `never`, or a share of failed models such as 20%."""


def waves(models: Sequence[T], size: str) -> tuple[tuple[T, ...], ...]:
    """Split the models into waves, in order; a share is rounded up."""
    if not models:
        return ()
    each = max(1, share_of(size, len(models)) if size.endswith("%") else int(size))
    return tuple(tuple(models[at : at + each]) for at in range(0, len(models), each))


def is_over(stop_at: str, failed: int, total: int) -> bool:
    """Whether the number of failures reaches the limit, so that no more models are begun."""
    if not failed or stop_at == "never":
        return False
    return stop_at == "first" or failed >= share_of(stop_at, total)


def share_of(share: str, total: int) -> int:
    """A share in percent as a number of models, rounded up."""
    return math.ceil(int(share.removesuffix("%")) * total / 100)
