"""The outcomes of a redeployment, model by model, and their table row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from moorage.common.units import human_seconds
from moorage.common.values import Value


class ModelOutcome(StrEnum):
    """What became of one model."""

    REDEPLOYED = "redeployed"
    UNCHANGED = "unchanged"
    NOTIFIED = "notified"
    WOULD_REDEPLOY = "would redeploy"
    FAILED = "failed"
    NOT_BEGUN = "not begun"


class Redeployed(Value):
    """One model of a redeployment.

    Attributes:
        model: Its name.
        outcome: What became of it.
        wave: In which wave it was, from 1; 0 = there was nothing to do.
        before: Release that served when it was looked at; empty = none.
        after: Release that serves since.
        why: What has moved, or why it was deployed anyway.
        message: How it ended.
        cause: Of a failure.
        exit_code: Of the class of the failure; 0 = there was none.
        seconds: How long it took.
        flow_run: Id of its own flow run; empty = it had none.
    """

    model: str
    outcome: ModelOutcome
    wave: int = 0
    before: str = ""
    after: str = ""
    why: str = ""
    message: str = ""
    cause: str = ""
    exit_code: int = 0
    seconds: float = 0.0
    flow_run: str = ""


HEADER = ("wave", "model", "outcome", "before", "after", "why", "took", "message")


def row_of(one: Redeployed) -> dict[str, Any]:
    """A row of the table."""
    cells = (
        one.wave or "-",
        one.model,
        one.outcome.value,
        one.before or "-",
        one.after or "-",
        one.why or "-",
        human_seconds(one.seconds) if one.seconds else "-",
        one.message,
    )
    return dict(zip(HEADER, cells, strict=True))


def summary(ended: Sequence[Redeployed]) -> str:
    """All of them in one line."""
    counts = Counter(one.outcome for one in ended)
    return ", ".join(f"{counts[kind]} {kind}" for kind in ModelOutcome if counts[kind]) or (
        "there was nothing to do"
    )


def is_failure(ended: Sequence[Redeployed]) -> bool:
    """Whether a model failed, or was not begun because another one did."""
    return any(one.outcome in (ModelOutcome.FAILED, ModelOutcome.NOT_BEGUN) for one in ended)
