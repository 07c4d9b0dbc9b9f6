"""Step look: find the drift of many models concurrently and decide what to do about each."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from itertools import takewhile
from pathlib import Path

from moorage.adapters.files.specs import load_specs
from moorage.adapters.prefect.current_run import current_flow_run
from moorage.adapters.registry.pinning import current_digest
from moorage.adapters.system.threads import hold_lock, in_thread
from moorage.common.failures import Cause, Failure
from moorage.common.units import counted
from moorage.inventory.fleet import Fleet, at_site
from moorage.models.quantizations import with_files
from moorage.operations.redeploy.drift import (
    Drift,
    DriftKind,
    branch_drift,
    file_drift,
    image_drift,
)
from moorage.operations.redeploy.intent import Intent, Redeployed, intent_of, question_of
from moorage.operations.redeploy.selection import Selection
from moorage.releases.release import Release
from moorage.releases.states import DEPLOYED, SERVING, ReleaseState
from moorage.spec import ModelSpec, OnDrift
from moorage.spec.one_shot import is_one_shot
from tasks.analyze import resolve_untracked
from tasks.compare import serving
from tasks.context import ledger, settings
from tasks.flow_task import flow_task
from tasks.image import tracked_image
from tasks.journal import mute_steps, step
from tasks.policy import ask

DECIDED = {
    OnDrift.NEVER: "left as they are",
    OnDrift.NOTIFY: "to be reported",
    OnDrift.REDEPLOY: "to redeploy",
}

MOST_TRIES = 50
"""How many of the newest releases are asked whether an engine failed with the same changes."""


def sole_watch(parameters: str) -> AbstractAsyncContextManager[None]:
    """Lock for being the only run of its deployment with these parameters, else raises `LockHeld`.

    Runs that no deployment began are not limited.
    """
    run = current_flow_run()
    if run is None or run.deployment_id is None:
        return nullcontext()
    name, note = f"redeploy:{run.deployment_id}:{parameters}", f"flow run {run.id}"
    return hold_lock(ledger().locks.holding(name, wait_seconds=0, note=note))


@flow_task("look", "look at what serves")
async def find_intents(selection: Selection, fleet: Fleet) -> list[Intent]:
    """Choose the models, find the drift of each, and decide; all in one task run.

    Raises for an unknown name or unreadable files; the failure of one model is in its intent.
    """
    hosts, gate = at_site(fleet, settings().site), asyncio.Semaphore(settings().hosts_at_once)
    by_policy = selection.by_policy

    async def decide(spec: ModelSpec, release: Release) -> Intent:
        probes = not by_policy and spec.name not in sleepers
        try:
            async with gate:
                drifts = await _find_drift(spec, release, hosts, probes=probes)
                later = await in_thread(_later, release) if by_policy and drifts else []
        except (Failure, TimeoutError) as error:
            late = Failure(Cause.STEP_TIMEOUT, str(error))
            failure = error if isinstance(error, Failure) else late
            intent = Intent(spec=spec, release=release.id)
            return intent.model_copy(update={"failure": intent.failed(failure)})
        return intent_of(
            release, spec, drifts, by_policy=by_policy, force=selection.force, later=later
        )

    with step("look") as note, mute_steps():
        releases, sleepers = await in_thread(_candidates, selection.names)
        written = await in_thread(_specs_of_files, selection.files)
        specs = [written.get(name, release.spec) for name, release in releases.items()]
        chosen = selection.chosen(specs)
        found = await asyncio.gather(*(decide(spec, releases[spec.name]) for spec in chosen))
        counts = Counter(one.action.value for one in found)
        text = ", ".join(f"{counts[one]} {words}" for one, words in DECIDED.items() if counts[one])
        note.say(f"{counted(len(found), 'model')}{': ' if text else ''}{text}")
        return found


async def ask_approval(todo: Sequence[Intent]) -> tuple[str, list[Redeployed]]:
    """Ask once for all models that need approval; returns it, or their outcomes without it.

    Without it their records note the changes, so that no policy asks for these again.
    """
    to_approve = [one for one in todo if one.needs_approval]
    try:
        return await ask(question_of(to_approve)) if to_approve else "", []
    except Failure as failure:
        if failure.cause in (Cause.APPROVAL_REFUSED, Cause.APPROVAL_TIMED_OUT):
            for one in [one for one in to_approve if one.changes]:
                await in_thread(ledger().releases.note_declined, one.release, one.changes)
        return "", [one.failed(failure) for one in to_approve]


def _specs_of_files(files: str) -> dict[str, ModelSpec]:
    if not files:
        return {}
    folder = Path(files)
    if not folder.is_absolute() or not folder.is_dir():
        raise Failure(Cause.BAD_SETTING, f"files: {files} is no absolute path of a folder here")
    return {spec.name: spec for spec in load_specs([folder])}


def _later(release: Release) -> list[Release]:
    """The later releases of its model that have a record, newest first; at most `MOST_TRIES`."""
    rows = ledger().releases.of_model(release.model, MOST_TRIES)
    later = takewhile(lambda row: row.id != release.id, rows)
    return [row.release for row in later if row.release]


async def _find_drift(
    spec: ModelSpec, release: Release, fleet: Fleet, *, probes: bool
) -> tuple[Drift, ...]:
    """All differences that a deploy would make now; with `probes`, its engines must answer, too."""
    moved, image = await _branch_drift(spec, release), tracked_image(release)
    digest = await in_thread(current_digest, image, fleet.registries) if image else ""
    drifts = (*file_drift(release, spec), *moved)
    drifts += image_drift(release, digest)
    if probes and not (await serving.untracked(spec, fleet))[1]:
        gone = Drift(kind=DriftKind.GONE, what=release.id, before="served", after="does not")
        drifts += (gone,)
    return drifts


async def _branch_drift(spec: ModelSpec, release: Release) -> tuple[Drift, ...]:
    """Drift of the model's sources; the files chosen for the release may no longer exist."""
    try:
        model = await resolve_untracked(with_files(spec, release.files))
    except Failure as failure:
        if release.files is None or failure.cause is not Cause.SOURCE_INCOMPLETE:
            raise
        gone = release.files.pattern
        return (Drift(kind=DriftKind.BRANCH, what=release.model, before=gone, after="not there"),)
    return branch_drift(release, model.revision, model.pins)


def _candidates(names: Sequence[str]) -> tuple[dict[str, Release], set[str]]:
    """Releases that serve or sleep, by model, and the models that sleep.

    For named models, also the last release if it failed serving. Models of `moorage run` are left
    out unless they are named.
    """
    own = ledger().releases
    found = own.in_states(DEPLOYED | {ReleaseState.WAKING})
    rows = {row.model: row for row in found if row.model in names or not is_one_shot(row.model)}
    sleepers = rows.keys() - {row.model for row in rows.values() if row.state in SERVING}
    for name in names:
        last = None if name in rows else own.last_that_ran(name)
        if last and last.state == ReleaseState.ERROR:
            rows[name] = last
    return {name: row.release for name, row in rows.items() if row.release}, sleepers
