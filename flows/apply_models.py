"""Apply many models at once: each deploy and each retirement is a flow run of its own."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Annotated

from prefect import flow, get_run_logger
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed
from pydantic import Field

from flows.flow_context import NO_RESULT, keep_result, requested_run
from flows.subflows import deploy_subflow, retire_subflow
from moorage.adapters.system.threads import in_thread
from moorage.common.failures import Cause, Failure
from moorage.operations.history.desired import Applied
from moorage.releases.requester import Claim
from moorage.reports.form_parameters import THIS_MACHINE, FleetParameter, SpecParameter
from moorage.reports.operations_report import applied_document
from moorage.spec import Name
from tasks.artifacts import show_markdown
from tasks.context import ledger
from tasks.journal import listen_as
from tasks.map_hosts import gather_all
from tasks.policy import current_submission, recorded_scope, settled_fleet

Job = Callable[[], Awaitable[Applied]]


@flow(name="apply-models", flow_run_name="apply {applied_from}", **NO_RESULT)
@keep_result
async def apply_models(
    specs: list[SpecParameter],
    fleet: FleetParameter = THIS_MACHINE,
    retire: list[Name] = [],  # noqa: B006
    applied_from: str = "",
    at_once: Annotated[int, Field(ge=1, le=64)] = 4,
    stop_on_failure: bool = False,
    requested_by: Claim = "",
) -> State[list[Applied]]:
    """Make the running models match a list of specs.

    Models are retired first, then deployed in the order of the list, some of them at once. One that
    fails does not keep the others from being deployed, unless `stop_on_failure` is set.

    Args:
        specs: The models to serve; one that already serves unchanged stays as it is.
        fleet: The hosts on which they may run. Default: the worker's fleet, else this machine.
        retire: Models to retire. Only those that were applied from the same set of files are
            retired.
        applied_from: Name of the set of files, for the records; empty = it owns nothing.
        at_once: Models deployed at the same time.
        stop_on_failure: Whether to start no more models after a failure.
        requested_by: The requester, for the record; not verified.
    """
    _require_each_once([one.name for one in specs], retire)
    queue = _ModelQueue(at_once, stop_on_failure)
    fleet = await settled_fleet(fleet)
    with requested_run(requested_by):
        jobs = {name: partial(_retire, name, applied_from) for name in retire}
        ended = await gather_all(*(queue.run("retire", *job) for job in jobs.items()))
        with recorded_scope(current_submission(), fleet):
            deploy = partial(deploy_subflow, fleet=fleet, file_set=applied_from)
            deploys = (queue.run("deploy", one.name, partial(deploy, one)) for one in specs)
            ended += await gather_all(*deploys)
    counts = Counter(f"{applied.action} {applied.outcome}" for applied in ended)
    done = ", ".join(f"{count} x {what}" for what, count in sorted(counts.items()))
    message = done or "there was nothing to do"
    await show_markdown("apply", applied_document(ended).markdown(), message)
    failed = any(applied.outcome in ("failed", "skipped") for applied in ended)
    return (Failed if failed else Completed)(message=message, data=ended)


def _require_each_once(deploys: Sequence[str], retirements: Sequence[str]) -> None:
    """Refuse a model that two jobs would work on, in whatever order they begin."""
    lists = {"specs": deploys, "retire": retirements}
    counts = {where: Counter(names) for where, names in lists.items()}
    found = [f"{name} in {at}" for at, names in counts.items() for name in names if names[name] > 1]
    found += [f"{name} in specs and in retire" for name in {*deploys} & {*retirements}]
    if found:
        raise Failure(
            Cause.BAD_SPEC,
            f"named more than once: {'; '.join(found)}",
            suggestion="List each model once, to deploy it or to retire it.",
        )


class _ModelQueue:
    """Runs the jobs of several models concurrently, in order; can skip the rest after a failure."""

    def __init__(self, at_once: int, stop_on_failure: bool) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._stops, self._failed = stop_on_failure, False

    async def run(self, action: str, model: str, job: Job) -> Applied:
        """Run the job of a model as soon as a slot is free."""
        async with self._free:
            if self._failed and self._stops:
                message = "not begun: another model failed"
                return Applied(model=model, action=action, outcome="skipped", message=message)
            with listen_as(model):
                applied = await job()
            self._failed = self._failed or applied.outcome == "failed"
            get_run_logger().info("%s: %s", model, applied.message)
            return applied


async def _retire(name: str, applied_from: str) -> Applied:
    own = ledger().releases
    row = await in_thread(own.running, name) or await in_thread(own.asleep, name)
    owner = row.release.applied_from if row and row.release else ""
    if row and (not applied_from or owner != applied_from):
        message = f"{row.id} was not applied from {applied_from or 'any set of files'}"
        return Applied(model=name, action="retire", outcome="skipped", message=message)
    return await retire_subflow(name)
