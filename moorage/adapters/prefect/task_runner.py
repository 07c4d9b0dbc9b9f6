"""Prefect's task runner of a flow that touches hosts: threads of this process, or a Ray cluster."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Self

from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from moorage.adapters.system.settings import Settings
from moorage.common.failures import Cause, Failure


def task_runner() -> TaskRunner[Any]:
    """The task runner of a flow that touches hosts, as `MOORAGE_TASK_RUNNER` selects it.

    With `ray`, tasks run on the cluster of `RAY_ADDRESS`, or on a cluster for this flow run.

    Raises:
        Failure: `BAD_SETTING` when prefect-ray is not installed. Entering the runner raises
            `SERVER_UNAVAILABLE` when the cluster cannot be used.
    """
    if Settings().task_runner == "here":
        return ThreadPoolTaskRunner()
    if not (find_spec("prefect_ray") and find_spec("ray")):
        raise Failure(
            Cause.BAD_SETTING,
            "MOORAGE_TASK_RUNNER is ray, and prefect-ray is not installed",
            suggestion="`pip install '.[ray]'` in the checkout, or leave MOORAGE_TASK_RUNNER"
            " unset.",
        )
    from prefect_ray import RayTaskRunner  # noqa: PLC0415  (an extra)

    class RayRunner(RayTaskRunner):  # type: ignore[misc]  # an extra, without types
        def __enter__(self) -> Self:
            try:
                super().__enter__()
            except Exception as error:
                raise _unusable(error) from error
            return self

    own = {} if os.environ.get("RAY_ADDRESS") else {"include_dashboard": False}
    runner: TaskRunner[Any] = RayRunner(init_kwargs={**own, "log_to_driver": False})
    return runner


def _unusable(error: Exception) -> Failure:
    where = os.environ.get("RAY_ADDRESS") or "of this run"
    return Failure(
        Cause.SERVER_UNAVAILABLE,
        f"the Ray cluster {where} cannot be used: {error}",
        suggestion="Check RAY_ADDRESS, and that the cluster has the same Ray and Python; or"
        " leave MOORAGE_TASK_RUNNER unset.",
    )


def is_elsewhere(runner: TaskRunner[Any]) -> bool:
    """Whether a task runner runs tasks in other processes."""
    return not isinstance(runner, ThreadPoolTaskRunner)


@contextmanager
def without_processors() -> Iterator[None]:
    """Submit tasks that reserve no processors of a Ray worker, because they mostly wait."""
    if not find_spec("prefect_ray"):
        yield
        return
    from prefect_ray.context import remote_options  # noqa: PLC0415  (an extra)

    with remote_options(num_cpus=0):
        yield
