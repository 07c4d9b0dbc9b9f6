"""The intents of a redeployment, their outcomes, and the approval of all of them."""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from moorage.common.failures import Failure
from moorage.common.units import human_seconds
from moorage.common.values import Value
from moorage.operations.history.changes import spec_changes
from moorage.operations.redeploy.drift import Drift, DriftKind, decide, has_failed, summarize
from moorage.policy.request import Channel, Submission
from moorage.releases.release import Release
from moorage.releases.requester import one_line
from moorage.spec import ModelSpec, OnDrift


class ModelOutcome(StrEnum):
    """Outcomes of a model in a redeployment."""

    REDEPLOYED = "redeployed"
    UNCHANGED = "unchanged"
    NOTIFIED = "notified"
    WOULD_REDEPLOY = "would redeploy"
    FAILED = "failed"
    NOT_BEGUN = "not begun"


class Redeployed(Value):
    """The outcome of one model in a redeployment.

    Attributes:
        wave: Number of its wave, from 1; 0 = not part of a wave.
        before: Release that served before; empty = none.
        after: Release that serves afterwards; empty = none.
        why: The changes, or why it was deployed without any.
        exit_code: Exit code of the failure's class; 0 = no failure.
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


def row_of(one: Redeployed) -> tuple[str, ...]:
    """A row of the table of outcomes, under `HEADER`."""
    return (
        str(one.wave or "-"),
        one.model,
        one.outcome.value,
        one.before or "-",
        one.after or "-",
        one.why or "-",
        human_seconds(one.seconds) if one.seconds else "-",
        one.message,
    )


def summary(ended: Sequence[Redeployed]) -> str:
    """The number of each outcome, in one line."""
    counts = Counter(one.outcome for one in ended)
    shown = ", ".join(f"{counts[kind]} {kind}" for kind in ModelOutcome if counts[kind])
    return shown or "there was nothing to do"


def is_failure(ended: Sequence[Redeployed]) -> bool:
    """Whether a model failed, or was not begun because others failed."""
    return any(one.outcome in (ModelOutcome.FAILED, ModelOutcome.NOT_BEGUN) for one in ended)


SERVER_SECONDS = 60
"""How much longer the server's limit for a waiting run is than moorage's, so that the run ends with
a cause and an event. The server's limit ends only runs whose process is gone."""


class Question(Value):
    """A request to approve a plan (Markdown) within `seconds`; no answer means no."""

    models: tuple[str, ...]
    plan: str
    seconds: int


class Answer(Value):
    """A person's answer, with their note."""

    approve: bool
    note: str = ""

    @property
    def approval(self) -> str:
        """The approval in one line, for the record. Only `moorage` notes who gave it."""
        return one_line(self.note) or "given in Prefect's UI or API"


class Intent(Value):
    """The action for one model, with its reason.

    Attributes:
        release: Id of the release to replace.
        applied_from: Set of files that it belongs to; a redeploy keeps it.
        why: The changes, or why it is deployed without any.
        takes_an_image: Whether the tag of its image has moved.
        changes: Digests of its drifts.
        failure: Outcome if its drifts could not be found; None = they were found.
    """

    spec: ModelSpec
    release: str
    applied_from: str = ""
    submission: Submission = Submission.defaults()
    action: OnDrift = OnDrift.NEVER
    why: str = ""
    takes_an_image: bool = False
    needs_approval: bool = False
    changes: tuple[str, ...] = ()
    failure: Redeployed | None = None

    @property
    def model(self) -> str:
        """The model's name."""
        return self.spec.name

    @property
    def as_it_is(self) -> Redeployed:
        """Its outcome without a redeploy."""
        if self.failure:
            return self.failure
        notified = self.action == OnDrift.NOTIFY
        return self.outcome(ModelOutcome.NOTIFIED if notified else ModelOutcome.UNCHANGED)

    @property
    def if_it_were_done(self) -> Redeployed:
        """Its outcome in a dry run."""
        message = "after approval" if self.needs_approval else ""
        return self.outcome(ModelOutcome.WOULD_REDEPLOY, message=message)

    def failed(self, failure: Failure) -> Redeployed:
        """Its outcome if it fails before its deploy begins."""
        return self.outcome(
            ModelOutcome.FAILED,
            message=str(failure),
            cause=failure.cause,
            exit_code=int(failure.cause.exit_code),
        )

    def outcome(self, outcome: ModelOutcome, **more: Any) -> Redeployed:
        """An outcome of this model."""
        return Redeployed(
            model=self.model, outcome=outcome, before=self.release, why=self.why, **more
        )


def intent_of(
    release: Release,
    spec: ModelSpec,
    drifts: Sequence[Drift],
    *,
    by_policy: bool,
    force: bool,
    later: Sequence[Release] = (),
) -> Intent:
    """The intent for a model.

    The policy only reports a model that was rolled back, whose engine has failed with the same
    changes, or for which nobody approved them. It redeploys none of these.

    Args:
        spec: The spec from its file, else the recorded one.
        by_policy: Whether the model's policy decides; else any drift leads to a redeploy.
        later: The model's later releases that have a record, newest first.
    """
    action, why = OnDrift.REDEPLOY if drifts else OnDrift.NEVER, summarize(drifts)
    if by_policy:
        action, why = _by_policy(release, spec, drifts, later)
    if force and action != OnDrift.REDEPLOY:
        action, why = OnDrift.REDEPLOY, summarize(drifts) or "forced, though nothing has changed"
    unapplied = spec_changes(release.spec, spec) if spec.digest == release.spec_digest else ()
    if unapplied and action == OnDrift.NEVER:
        why = f"{unapplied[0].what} in its file differs: `moorage apply` records that"
    return Intent(
        spec=spec,
        release=release.id,
        applied_from=release.applied_from,
        submission=submission_of(release, spec),
        action=action,
        why=why,
        takes_an_image=any(drift.kind == DriftKind.IMAGE for drift in drifts),
        # A file from which the requirement was taken does not take it from what serves.
        needs_approval=spec.redeploy.needs_approval or release.spec.redeploy.needs_approval,
        changes=tuple(drift.digest for drift in drifts),
    )


def _by_policy(
    release: Release, spec: ModelSpec, drifts: Sequence[Drift], later: Sequence[Release]
) -> tuple[OnDrift, str]:
    action, why = decide(drifts, spec.redeploy)
    if action != OnDrift.REDEPLOY:
        return action, why
    if release.rolled_back_to:  # on purpose, by a person
        return OnDrift.NOTIFY, f"was rolled back to {release.rolled_back_to}; {why}"
    for attempt in later:
        if attempt.failure and has_failed(release, drifts, attempt):
            return OnDrift.NOTIFY, f"{attempt.id} failed with it ({attempt.failure.cause}); {why}"
    # A registry that does not answer shows no moved image, so there may be fewer drifts now.
    declined = {drift.digest for drift in drifts} <= {*release.declined}
    if declined and (spec.redeploy.needs_approval or release.spec.redeploy.needs_approval):
        return OnDrift.NOTIFY, f"nobody approved it; {why}"
    return action, why


def submission_of(release: Release, spec: ModelSpec) -> Submission:
    """The release's submission; for a changed spec, from the site's files, the channel is CLI."""
    if spec == release.spec:
        return release.submission
    return release.submission.model_copy(update={"channel": Channel.CLI})


def question_of(intents: Sequence[Intent]) -> Question:
    """The request to approve all intents, with the shortest of their time limits."""
    lines = []
    for one in intents:
        why = one.why.replace("|", "\\|").replace("\n", " ")
        lines.append(f"| {one.model} | {one.release} | {why} |")
    return Question(
        models=tuple(one.model for one in intents),
        plan="\n".join(["| model | serves now | why |", "| --- | --- | --- |", *lines]),
        seconds=min(one.spec.redeploy.approval_seconds for one in intents),
    )
