"""What has moved, and what the policy of its model makes of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.common.failures import Cause, Failure
from moorage.models.pin import AssetRole, Pin
from moorage.operations.redeploy.drift import (
    Drift,
    DriftKind,
    branch_drift,
    decide,
    file_drift,
    has_failed,
    image_drift,
)
from moorage.operations.redeploy.intent import Intent, ModelOutcome, intent_of, question_of
from moorage.releases.release import FailureRecord, Release
from moorage.spec import Approval, OnDrift, RedeploySpec
from tests.builders import REVISION, a_release, a_spec, an_image

OTHER = "b" * 40
POET = Pin(role=AssetRole.ADAPTER, name="poet", source="hf://org/poet", revision="a1", rank=8)
KINDS = {"on_moved_branch": DriftKind.BRANCH, "on_moved_image": DriftKind.IMAGE}
KINDS["on_changed_file"] = DriftKind.FILE


def a_drift(kind: DriftKind = DriftKind.BRANCH) -> Drift:
    return Drift(kind=kind, what="tiny", before=REVISION, after=OTHER)


def policy(**changes: Any) -> RedeploySpec:
    return RedeploySpec.model_validate(changes)


def tried(failure: Cause | None = Cause.ENGINE_EXITED, **changes: Any) -> Release:
    """A later release that has failed."""
    record = failure and FailureRecord(cause=failure, detail="", suggestion="")
    spec = changes.get("spec", a_spec())
    facts = {"id": "tiny.v2", "spec": spec, "spec_digest": spec.digest, "failure": record}
    return a_release(**{**facts, **changes})


def by_policy(drifts: list[Drift], *later: Release, force: bool = False) -> Intent:
    """The intent for a model whose branch is followed."""
    spec = a_spec(redeploy={"on_moved_branch": "redeploy"})
    release = a_release(spec=spec, spec_digest=spec.digest)
    return intent_of(release, spec, drifts, by_policy=True, force=force, later=later)


class TestMoved:
    def test_nothing(self) -> None:
        release = a_release(revision=REVISION, companions=(POET,))
        assert branch_drift(release, REVISION, (POET,)) == ()
        assert file_drift(release, release.spec) == ()

    def test_the_branch_of_the_model(self) -> None:
        (drift,) = branch_drift(a_release(revision=REVISION), OTHER, ())
        assert drift.summary == f"moved branch: tiny {REVISION[:12]} -> {OTHER[:12]}"

    def test_the_branch_of_an_adapter(self) -> None:
        release = a_release(revision=REVISION, companions=(POET,))
        (drift,) = branch_drift(release, REVISION, (POET.model_copy(update={"revision": "a2"}),))
        assert drift.summary == "moved branch: adapter poet a1 -> a2"

    def test_the_tag_of_the_image(self) -> None:
        release = a_release(image=an_image(digest="sha256:" + "1" * 64))
        (drift,) = image_drift(release, "sha256:" + "2" * 64)
        assert drift.kind == DriftKind.IMAGE
        assert drift.summary.endswith("111111111111 -> 222222222222")

    def test_a_field_of_the_file_is_told_whole(self) -> None:
        before, after = (f"file:///srv/models/quite/a/long/folder/{name}" for name in "ab")
        (drift,) = file_drift(a_release(spec=a_spec(source=before)), a_spec(source=after))
        assert drift.summary == f"changed file: source {before} -> {after}"

    @pytest.mark.parametrize("digest", ["", "sha256:" + "1" * 64])
    def test_a_registry_that_cannot_be_asked_or_says_the_same_moves_nothing(
        self, digest: str
    ) -> None:
        release = a_release(image=an_image(digest="sha256:" + "1" * 64))
        assert image_drift(release, digest) == ()
        assert image_drift(a_release(image=None), "sha256:" + "2" * 64) == ()

    def test_fields_of_the_file_that_change_what_runs(self) -> None:
        release = a_release(spec=a_spec(), spec_digest=a_spec().digest)
        changed = a_spec(context=1024, labels={"tier": "gold"})
        assert [drift.what for drift in file_drift(release, changed)] == ["context"]

    def test_labels_and_policies_change_nothing_that_runs(self) -> None:
        release = a_release(spec=a_spec(), spec_digest=a_spec().digest)
        unapplied = a_spec(labels={"tier": "gold"}, redeploy={"approval": "required"})
        assert unapplied.digest == a_spec().digest
        assert file_drift(release, unapplied) == ()


class TestDecided:
    @pytest.mark.parametrize("field", KINDS)
    @pytest.mark.parametrize("action", OnDrift)
    def test_each_kind_by_its_own_field(self, field: str, action: OnDrift) -> None:
        decided, why = decide([a_drift(KINDS[field])], policy(**{field: action}))
        assert decided == action
        assert bool(why) is (action != OnDrift.NEVER)

    def test_unless_asked_for_drift_is_told_and_nothing_is_redeployed(self) -> None:
        assert decide([a_drift(kind) for kind in DriftKind], policy())[0] == OnDrift.NOTIFY

    @given(st.lists(st.sampled_from(list(DriftKind))), st.data())
    def test_the_strongest_counts(self, kinds: list[DriftKind], data: st.DataObject) -> None:
        reactions = {field: data.draw(st.sampled_from(list(OnDrift))) for field in KINDS}
        order = list(OnDrift)
        wanted = [order.index(reactions[field]) for field, kind in KINDS.items() if kind in kinds]
        decided, _ = decide([a_drift(kind) for kind in kinds], policy(**reactions))
        assert order.index(decided) == max(wanted, default=0)

    def test_what_does_not_serve_is_left_to_reconciling(self) -> None:
        assert decide([a_drift(DriftKind.GONE)], policy())[0] == OnDrift.NEVER


class TestIntended:
    def test_without_a_policy_everything_that_moved_is_taken(self) -> None:
        never = a_spec(redeploy={"on_moved_branch": "never"})
        one = intent_of(a_release(), never, [a_drift()], by_policy=False, force=False)
        assert one.action == OnDrift.REDEPLOY

    def test_what_has_not_moved_is_only_redeployed_by_force(self) -> None:
        release = a_release(spec=a_spec(), spec_digest=a_spec().digest)
        one = intent_of(release, a_spec(), [], by_policy=False, force=False)
        assert (one.action, one.as_it_is.outcome) == (OnDrift.NEVER, ModelOutcome.UNCHANGED)
        forced = intent_of(release, a_spec(), [], by_policy=False, force=True)
        assert forced.action == OnDrift.REDEPLOY

    def test_a_policy_does_not_undo_a_rollback_but_a_person_may(self) -> None:
        release = a_release(rolled_back_to="tiny.v0")
        spec = a_spec(redeploy={"on_moved_branch": "redeploy"})
        watched = intent_of(release, spec, [a_drift()], by_policy=True, force=False)
        assert watched.action == OnDrift.NOTIFY
        assert watched.why.startswith("was rolled back to tiny.v0; moved branch")
        intent = intent_of(release, spec, [a_drift()], by_policy=False, force=False)
        assert intent.action == OnDrift.REDEPLOY

    @pytest.mark.parametrize("serves", Approval)
    @pytest.mark.parametrize("file", Approval)
    def test_a_file_does_not_take_the_approval_from_what_serves(
        self, serves: Approval, file: Approval
    ) -> None:
        release = a_release(spec=a_spec(redeploy={"approval": serves}))
        spec = a_spec(redeploy={"approval": file})
        one = intent_of(release, spec, [a_drift()], by_policy=False, force=False)
        assert one.needs_approval == (Approval.REQUIRED in (serves, file))

    def test_a_policy_does_not_repeat_a_change_with_which_the_engine_has_failed(self) -> None:
        one = by_policy([a_drift()], tried(revision=OTHER))
        assert one.action == OnDrift.NOTIFY
        assert one.why.startswith("tiny.v2 failed with it (engine-exited); moved branch")
        again = by_policy([a_drift()], tried(Cause.NO_FIT, id="tiny.v3"), tried(revision=OTHER))
        assert again.why.startswith("tiny.v2 failed with it"), "a later try said nothing of it"
        forced = by_policy([a_drift()], tried(revision=OTHER), force=True)
        assert forced.action == OnDrift.REDEPLOY

    @pytest.mark.parametrize(
        ("newest", "why"),
        [
            (None, "nothing was tried"),
            ({"failure": Cause.ENGINE_ACCELERATOR_BUSY}, "another program had its memory"),
            ({"failure": None}, "it did not fail"),
            ({"failure": Cause.NO_FIT}, "the fleet was full"),
            ({"revision": "c" * 40}, "the branch has moved on"),
            ({"spec": a_spec(context=1024)}, "it had another spec"),
            ({"companions": (POET,)}, "it had other adapters"),
        ],
    )
    def test_a_policy_takes_what_has_not_failed(
        self, newest: dict[str, Any] | None, why: str
    ) -> None:
        later = [] if newest is None else [tried(**{"revision": OTHER, **newest})]
        assert by_policy([a_drift()], *later).action == OnDrift.REDEPLOY, why

    def test_an_image_is_tried_again_once_its_tag_moves_on(self) -> None:
        first, second, third = (f"sha256:{digit * 64}" for digit in "123")
        release, failed = a_release(image=an_image(digest=first)), an_image(digest=second)
        newest = tried(image=failed)
        assert has_failed(release, image_drift(release, second), newest)
        assert not has_failed(release, image_drift(release, third), newest)
        other = tried(image=an_image(digest=second, reference="vllm/vllm-openai:v0.33.0"))
        assert not has_failed(release, image_drift(release, second), other)
        moved = tried(image=failed, revision=OTHER)
        assert has_failed(release, [a_drift()], moved), "the registry does not answer now"

    def test_a_moved_image_is_remembered_for_nothing_else_tells_the_deploy(self) -> None:
        moved = intent_of(
            a_release(), a_spec(), [a_drift(DriftKind.IMAGE)], by_policy=False, force=False
        )
        assert moved.takes_an_image

    def test_a_redeploy_leaves_the_model_in_its_set_of_files(self) -> None:
        release = a_release(applied_from="production")
        one = intent_of(release, release.spec, [a_drift()], by_policy=False, force=False)
        assert one.applied_from == "production"

    def test_one_question_names_every_model_and_waits_as_long_as_the_most_impatient(self) -> None:
        specs = [
            a_spec(name=name, redeploy={"approval": "required", "approval_seconds": seconds})
            for name, seconds in (("a", 60), ("b", 30))
        ]
        intents = [
            intent_of(a_release(), spec, [a_drift()], by_policy=False, force=False)
            for spec in specs
        ]
        question = question_of(intents)
        assert (question.models, question.seconds) == (("a", "b"), 30)
        assert "| b | tiny.v1 | moved branch: tiny a3c1f0e5b7d9 -> bbbbbbbbbbbb |" in question.plan

    def test_a_failure_before_it_was_begun_has_its_cause_and_exit_code(self) -> None:
        one = intent_of(a_release(), a_spec(), [a_drift()], by_policy=False, force=False)
        failed = one.failed(Failure(Cause.APPROVAL_TIMED_OUT, "tiny"))
        assert (failed.outcome, failed.cause) == (ModelOutcome.FAILED, "approval-timed-out")
        assert failed.exit_code == 7
