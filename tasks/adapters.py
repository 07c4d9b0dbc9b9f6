"""Steps load and unload: LoRA adapters of a running release, in each of its replicas."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from moorage.adapters.engines.engine_folders import install_adapter, remove_unused_adapters
from moorage.adapters.engines.engine_http import ask, served_names
from moorage.adapters.secrets import redact
from moorage.adapters.system.threads import in_thread, run_uninterrupted, threaded
from moorage.common.failures import Cause, Failure
from moorage.engines.registry import ENGINES
from moorage.engines.updates import AdapterUpdates, adapter_probes, lacks_adapter, refusal, seen_by
from moorage.engines.workload import Workload
from moorage.models.source import Companion
from moorage.readiness.answers import judge
from moorage.releases.loaded_adapters import loaded, with_adapter, without_adapter
from moorage.releases.release import Release
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import KEPT
from tasks.context import ledger, settings
from tasks.flow_task import flow_task
from tasks.journal import step
from tasks.map_hosts import gather_all
from tasks.verify import api_key


@threaded
def running_release(model: str) -> ReleaseRow:
    """The release that serves a model name; raises `UNKNOWN_RELEASE` when none serves it."""
    row = ledger().releases.running(model)
    if row is None:
        raise Failure(Cause.UNKNOWN_RELEASE, f"{model} is not running")
    return row


async def served_adapters(row: ReleaseRow, release: Release) -> dict[str, frozenset[str]]:
    """The names that each replica serves; raises `ADAPTER_REFUSED` when one does not list them."""
    key = await in_thread(_key, release)
    found: dict[str, frozenset[str]] = {}
    for workload in row.serving:
        names = await served_names(workload.endpoint, key)
        if names is None:
            raise Failure(
                Cause.ADAPTER_REFUSED,
                f"{workload.name} does not tell what it serves",
                suggestion=f"`moorage status {row.model}` shows whether it runs; deploy it again.",
            )
        found[workload.name] = names
    return found


@flow_task("load", "load {companion.name}")
async def load(
    release: Release, companion: Companion, workloads: Sequence[Workload]
) -> tuple[Workload, ...]:
    """Load an adapter into replicas, and prove that each answers under its name.

    Raises:
        Failure: `ADAPTER_REFUSED` with the engine's own words, `BAD_ANSWER`.
    """
    with step("load") as note:
        pin, folder = companion.pin, settings().adapters_folder(release.model)
        place = await in_thread(install_adapter, companion.model, pin, folder)
        updates, key = _updates(release), await in_thread(_key, release)
        containers = {one.name: one for one in release.plan.containers} if release.plan else {}
        for workload in workloads:
            directory = seen_by(containers[workload.name], str(folder), str(place))
            probe, seconds = updates.loading(pin.name, directory), _seconds(release)
            status, answer = await ask(workload.endpoint, probe, seconds, key)
            if status != 200:
                raise refusal(probe.name, workload.name, status, answer)
        answers = [await _prove(release, workload, pin.name, key) for workload in workloads]
        note.say(
            f"{len(workloads)} of {len(workloads)} replicas answer as {pin.name}: {answers[0]}"
        )
        return tuple(with_adapter(workload, pin) for workload in workloads)


@flow_task("unload", "unload {name}")
async def unload(release: Release, name: str, workloads: Sequence[Workload]) -> None:
    """Unload an adapter from all replicas at once; a failure stops no other replica."""
    with step("unload") as note:
        # The engine goes on with an unload whose flow is stopped, so that its record follows.
        jobs = (run_uninterrupted(undo_load, release, name, one) for one in workloads)
        await gather_all(*jobs)
        note.say(f"{name} is unloaded from {', '.join(one.name for one in workloads)}")


def undo_load(release: Release, name: str, workload: Workload) -> None:
    """Unload an adapter from one replica and from its record. Idempotent."""
    probe = _updates(release).unloading(name)
    status, answer = asyncio.run(ask(workload.endpoint, probe, _seconds(release), _key(release)))
    if status != 200 and not lacks_adapter(name, status, answer):
        raise refusal(name, workload.name, status, answer)
    ledger().workloads.put(release.id, without_adapter(workload, name))


def record_workloads(release: Release, workloads: Sequence[Workload]) -> None:
    """Write workloads, with the adapters that they hold, into the ledger."""
    for workload in workloads:
        ledger().workloads.put(release.id, workload)


def tidy(model: str) -> None:
    """Remove files of adapters that are no longer loaded, and the folder if no release uses it.

    A release without workloads may be started again, and its containers mount the folder.
    """
    folder, own = settings().adapters_folder(model), ledger().releases
    failed = (row for row in own.not_undone() if row.workloads)
    rows = [row for row in (*own.in_states(KEPT), *failed) if row.model == model]
    remove_unused_adapters(folder, [pin for row in rows for pin in loaded(row)])
    if not rows:
        with suppress(OSError):  # it is not empty
            folder.rmdir()


async def _prove(release: Release, workload: Workload, name: str, key: str) -> str:
    """Request an answer under the adapter's name; returns its text, raises `BAD_ANSWER`."""
    text = ""
    if release.plan is None or release.profile is None:
        return text
    model = ENGINES[release.plan.engine].adapter_name(release.model, name)
    for probe in adapter_probes(release.spec, release.profile, name, model):
        status, answer = await ask(workload.endpoint, probe, _seconds(release), key)
        wrong, text = judge(probe, status, answer)
        if wrong:
            raise Failure(Cause.BAD_ANSWER, f"{workload.name}: {probe.path}: {wrong}")
    return redact(text)


def _updates(release: Release) -> AdapterUpdates:
    engine = ENGINES[release.plan.engine] if release.plan else None
    if engine is None or engine.updates is None:
        raise Failure(Cause.ADAPTERS_FIXED, f"the engine of {release.id} takes none")
    return engine.updates


def _key(release: Release) -> str:
    return api_key(release.plan) if release.plan else ""


def _seconds(release: Release) -> float:
    return float(release.spec.readiness.deadlines.warm_up_seconds)
