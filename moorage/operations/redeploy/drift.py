"""Changes since a release was made, and the reactions of its policy."""

import hashlib
import re
from collections.abc import Sequence
from enum import StrEnum

from moorage.common.failures import Cause, ExitCode
from moorage.common.values import Value
from moorage.models.pin import Pin
from moorage.operations.history.changes import spec_changes
from moorage.releases.release import Release
from moorage.spec import ModelSpec, OnDrift, RedeploySpec


class DriftKind(StrEnum):
    """Kinds of differences between the serving release and a new deploy."""

    FILE = "changed file"
    BRANCH = "moved branch"
    IMAGE = "moved image"
    GONE = "does not serve"


class Drift(Value):
    """One difference between the serving release and a new deploy.

    `what` names the changed item, such as an adapter or a field of the spec.
    """

    kind: DriftKind
    what: str
    before: str
    after: str

    @property
    def summary(self) -> str:
        """The difference in words."""
        return f"{self.kind}: {self.what} {_short(self.before)} -> {_short(self.after)}"

    @property
    def digest(self) -> str:
        """Identifies the difference. Its own values may be whole fields of a spec."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


def file_drift(release: Release, spec: ModelSpec) -> tuple[Drift, ...]:
    """Changed fields of the spec that affect the engines."""
    if spec.digest == release.spec_digest:
        return ()
    changed = spec_changes(release.spec.as_it_runs, spec.as_it_runs)
    fields = [(one.what, one.before or "", one.after or "") for one in changed]
    return tuple(
        Drift(kind=DriftKind.FILE, what=what, before=before, after=after)
        for what, before, after in fields or [("spec", release.spec_digest, spec.digest)]
    )


def branch_drift(release: Release, revision: str, pins: Sequence[Pin]) -> tuple[Drift, ...]:
    """The model and companions whose branches now name another commit."""
    before = {release.model: release.revision} | _revisions(release.companions)
    after = {release.model: revision} | _revisions(pins)
    return tuple(
        Drift(kind=DriftKind.BRANCH, what=name, before=old, after=new)
        for name in {**before, **after}
        if (old := before.get(name, "")) != (new := after.get(name, ""))
    )


def image_drift(release: Release, digest: str) -> tuple[Drift, ...]:
    """The image if its tag now names another digest; an empty digest is not compared."""
    image = release.image
    if image is None or not image.digest or digest in ("", image.digest):
        return ()
    return (Drift(kind=DriftKind.IMAGE, what=image.as_written, before=image.digest, after=digest),)


PASSING = {
    *(Cause.ENGINE_ACCELERATOR_BUSY, Cause.ENGINE_NO_DEVICE),
    *(Cause.LAUNCH_REFUSED, Cause.PACKAGES_NOT_INSTALLED),
}
"""Failures at the start of an engine that say nothing about what it was to run."""


def has_failed(release: Release, drifts: Sequence[Drift], attempt: Release) -> bool:
    """Whether the engine of a later release (`attempt`) failed with these drifts of `release`.

    Other failures, such as a full fleet, say nothing about the changes. The image is not compared
    where it could not be looked up, or comes from another tag.
    """
    cause = attempt.failure.cause if attempt.failure else None
    if cause is None or cause in PASSING or cause.exit_code != ExitCode.ENGINE:
        return False
    own = file_drift(release, attempt.spec)
    own += branch_drift(release, attempt.revision, attempt.companions)
    images = image_drift(release, _digest_by_tag(attempt, release))
    others = tuple(drift for drift in drifts if drift.kind != DriftKind.IMAGE)
    return own == others and {*drifts} <= {*own, *images}


def _digest_by_tag(attempt: Release, release: Release) -> str:
    """The digest that a release ran, if it took it from the tag of another; else empty."""
    if attempt.image and release.image and attempt.image.as_written == release.image.as_written:
        return attempt.image.digest
    return ""


def decide(drifts: Sequence[Drift], policy: RedeploySpec) -> tuple[OnDrift, str]:
    """The strongest reaction of the policy to any of the drifts, and the reason.

    Ignores drifts with the reaction `never`, and models that do not serve: those are left to
    reconciling.
    """
    reactions = {
        DriftKind.FILE: policy.on_changed_file,
        DriftKind.BRANCH: policy.on_moved_branch,
        DriftKind.IMAGE: policy.on_moved_image,
        DriftKind.GONE: OnDrift.NEVER,
    }
    counted = [drift for drift in drifts if reactions[drift.kind] != OnDrift.NEVER]
    actions = [OnDrift.NEVER, *(reactions[drift.kind] for drift in counted)]
    strongest = max(actions, key=list(OnDrift).index)
    return strongest, summarize(counted)


def summarize(drifts: Sequence[Drift]) -> str:
    """All drifts in words."""
    return "; ".join(drift.summary for drift in drifts)


_REVISION = re.compile(r"(?:sha256:)?[0-9a-f]{32,}")


def _revisions(pins: Sequence[Pin]) -> dict[str, str]:
    return {f"{pin.role} {pin.name or pin.source}": pin.revision for pin in pins}


def _short(text: str) -> str:
    """Shorten a revision or digest; leave other texts unchanged."""
    if _REVISION.fullmatch(text):
        text = text.removeprefix("sha256:")[:12]
    return text or "-"
