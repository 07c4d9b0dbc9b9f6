"""Ask a person to approve a deploy, with its plan, where the spec requires that."""

from __future__ import annotations

from typing import Any

from prefect.client.schemas.objects import State

from flows.plan_model import plan_model
from flows.result_recovery import whole
from moorage.inventory.fleet import Fleet
from moorage.operations.history.changes import spec_changes
from moorage.operations.redeploy.intent import Question
from moorage.releases.release import Release
from moorage.reports.record import plan_document
from moorage.spec import Approval, ModelSpec
from tasks.approval import ask, is_approved
from tasks.context import in_thread, ledger


async def require_approval(spec: ModelSpec, fleet: Fleet, *, force: bool) -> None:
    """Return once the deploy may begin: at once where nobody has to agree, or nothing would change.

    The plan is a run of `plan-model` below this one. It is made without the lock of the model's
    name, so nobody waits for a person; what is found after the approval is what is deployed.

    Raises:
        Failure: When nobody agreed, or the model cannot be deployed at all.
    """
    if spec.redeploy.approval != Approval.REQUIRED or is_approved(spec.name):
        return
    state: State[Any] = whole(await plan_model(spec, fleet, return_state=True))
    release: Release = await state.aresult()
    if state.name == "Unchanged" and not force:
        return
    await ask(
        Question(
            models=(spec.name,),
            plan=await in_thread(_plan, spec, release, state.name == "Unchanged"),
            seconds=spec.redeploy.approval_seconds,
        )
    )


def _plan(spec: ModelSpec, release: Release, unchanged: bool) -> str:
    if unchanged:
        return f"{release.id} serves all this already and would be replaced by the same."
    row = ledger().releases.running(spec.name)
    before = row.release.spec if row and row.release else None
    changed = spec_changes(before, spec) if before else ()
    lines = [f"- {one.what}: {one.before or '-'} -> {one.after or '-'}" for one in changed]
    if row:
        lines.insert(0, f"It would replace {row.id}, which serves {row.revision[:12]}.\n")
    return "\n".join([*lines, "", plan_document(release).markdown()])
