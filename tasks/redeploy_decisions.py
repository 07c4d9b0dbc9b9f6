"""Step look: what is to be done about many models, each looked at, so many at the same time."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

from prefect import task

from moorage.adapters.files.specs import load_specs
from moorage.adapters.registry.pinning import current_digest
from moorage.adapters.system.threads import in_thread
from moorage.common.failures import Cause, Failure
from moorage.inventory.fleet import Fleet
from moorage.operations.redeploy.drift import (
    Drift,
    DriftKind,
    branch_drift,
    file_drift,
    image_drift,
)
from moorage.operations.redeploy.intent import Intent, intent_of
from moorage.operations.redeploy.selection import chosen
from moorage.releases.release import Release, ReleaseRow
from moorage.releases.states import SERVING, ReleaseState
from moorage.spec import ModelSpec, OnDrift
from moorage.spec.image_reference import parse_reference
from tasks.compare import serving
from tasks.context import PLAIN, ledger, settings
from tasks.journal import mute_steps, step
from tasks.resolve import resolve_untracked


@task(name="look", task_run_name="look at what serves", **PLAIN)
async def find_intents(
    names: list[str],
    labels: dict[str, str],
    fleet: Fleet,
    files: str,
    *,
    by_policy: bool,
    force: bool,
) -> list[Intent]:
    """Choose the models, look at each, and decide. All of them are one task run.

    Raises:
        Failure: When a name is unknown, or the files cannot be read; that one model cannot be
            looked at is in its intent.
    """
    with step("look") as note, mute_steps():
        found = await _decide_all(names, labels, fleet, files, by_policy=by_policy, force=force)
        counts = Counter(one.action.value for one in found)
        text = ", ".join(f"{action}: {counts[action]}" for action in OnDrift if counts[action])
        note.say(f"{len(found)} models looked at{'; ' if text else ''}{text}")
        return found


async def _decide_all(
    names: list[str],
    labels: dict[str, str],
    fleet: Fleet,
    files: str,
    *,
    by_policy: bool,
    force: bool,
) -> list[Intent]:
    rows = await in_thread(candidates, names)
    written = await in_thread(_specs_of_files, files)
    releases = {name: row.release for name, row in rows.items() if row.release}
    specs = [written.get(name, release.spec) for name, release in releases.items()]
    gate = asyncio.Semaphore(settings().hosts_at_once)

    async def one(spec: ModelSpec) -> Intent:
        async with gate:
            return await _decide(spec, releases[spec.name], fleet, by_policy=by_policy, force=force)

    return list(await asyncio.gather(*map(one, chosen(specs, names, labels))))


async def _decide(
    spec: ModelSpec, release: Release, fleet: Fleet, *, by_policy: bool, force: bool
) -> Intent:
    try:
        drifts = await find_drift(spec, release, fleet, not by_policy)
    except (Failure, TimeoutError) as error:
        failure = error if isinstance(error, Failure) else Failure(Cause.STEP_TIMEOUT, str(error))
        unseen = Intent(spec=spec, release=release.id)
        return unseen.model_copy(update={"failure": unseen.failed(failure)})
    return intent_of(release, spec, drifts, by_policy=by_policy, force=force)


def _specs_of_files(files: str) -> dict[str, ModelSpec]:
    """The specs of a folder by name.

    Raises:
        Failure: `BAD_SETTING` where there is no such folder; `BAD_SPEC` for mistakes in it.
    """
    if not files:
        return {}
    folder = Path(files)
    if not folder.is_absolute() or not folder.is_dir():
        raise Failure(Cause.BAD_SETTING, f"files: {files} is no absolute path of a folder here")
    return {spec.name: spec for spec in load_specs([folder])}


async def find_drift(
    spec: ModelSpec, release: Release, fleet: Fleet, whether_it_serves: bool
) -> tuple[Drift, ...]:
    """Everything that a deploy of the model would make otherwise now.

    Args:
        spec: The model as it is meant to be served now.
        release: What serves.
        fleet: It names the registries.
        whether_it_serves: Whether to check the engine too.

    Raises:
        Failure: When its source does not answer.
    """
    model = await resolve_untracked(spec)
    drifts = (*file_drift(release, spec), *branch_drift(release, model.revision, model.pins))
    drifts += image_drift(release, await in_thread(_current_digest, release, fleet))
    if whether_it_serves and not (await serving.fn(spec))[1]:
        gone = Drift(kind=DriftKind.GONE, what=release.id, before="served", after="does not")
        drifts += (gone,)
    return drifts


def candidates(names: list[str]) -> dict[str, ReleaseRow]:
    """What serves, by its model; and, of models that are named, what served until it failed."""
    rows = {row.model: row for row in ledger().releases.in_states(SERVING)}
    for name in names:
        if name not in rows and (row := _last_failure(name)):
            rows[name] = row
    return {name: row for name, row in rows.items() if row.release}


def _last_failure(name: str) -> ReleaseRow | None:
    """The last release that ran, unless it was retired."""
    ran = (row for row in ledger().releases.of_model(name) if row.release and row.release.ran)
    last = next(ran, None)
    return last if last and last.state == ReleaseState.ERROR else None


def _current_digest(release: Release, fleet: Fleet) -> str:
    image = release.image
    if image is None or not image.digest or parse_reference(image.reference).digest:
        return ""
    return current_digest(image, fleet.registries)
