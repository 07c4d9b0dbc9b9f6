"""Step look: what is to be done about many models, each looked at, so many at the same time."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

from prefect import task

from moorage.adapters.files.desired import load_specs
from moorage.common.failures import Cause, Failure
from moorage.inventory.fleet import Fleet
from moorage.operations.redeploy.intent import Intent, intent_of
from moorage.operations.redeploy.selection import chosen
from moorage.releases.release import Release
from moorage.spec import ModelSpec, OnDrift
from tasks.context import in_thread, settings
from tasks.drift import candidates, look
from tasks.journal import step, unheard
from tasks.retries import PLAIN


@task(name="look", task_run_name="look at what serves", **PLAIN)
async def intents_of(
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
    with step("look") as note, unheard():
        found = await _intents(names, labels, fleet, files, by_policy=by_policy, force=force)
        counts = Counter(one.action.value for one in found)
        told = ", ".join(f"{action}: {counts[action]}" for action in OnDrift if counts[action])
        note.say(f"{len(found)} models looked at{'; ' if told else ''}{told}")
        return found


async def _intents(
    names: list[str],
    labels: dict[str, str],
    fleet: Fleet,
    files: str,
    *,
    by_policy: bool,
    force: bool,
) -> list[Intent]:
    rows = await in_thread(candidates, names)
    written = await in_thread(_written, files)
    releases = {name: row.release for name, row in rows.items() if row.release}
    specs = [written.get(name, release.spec) for name, release in releases.items()]
    gate = asyncio.Semaphore(settings().hosts_at_once)

    async def one(spec: ModelSpec) -> Intent:
        async with gate:
            return await _one(spec, releases[spec.name], fleet, by_policy=by_policy, force=force)

    return list(await asyncio.gather(*map(one, chosen(specs, names, labels))))


async def _one(
    spec: ModelSpec, release: Release, fleet: Fleet, *, by_policy: bool, force: bool
) -> Intent:
    try:
        drifts = await look(spec, release, fleet, not by_policy)
    except (Failure, TimeoutError) as error:
        failure = error if isinstance(error, Failure) else Failure(Cause.STEP_TIMEOUT, str(error))
        unseen = Intent(spec=spec, release=release.id)
        return unseen.model_copy(update={"failure": unseen.failed(failure)})
    return intent_of(release, spec, drifts, by_policy=by_policy, force=force)


def _written(files: str) -> dict[str, ModelSpec]:
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
