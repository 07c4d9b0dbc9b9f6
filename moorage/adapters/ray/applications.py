"""Models as applications of Ray Serve on an existing Ray cluster."""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress

from moorage.adapters.hosts.observation import Observation
from moorage.adapters.ray.dashboard import RayDashboard
from moorage.adapters.secrets import redact
from moorage.common.failures import Cause, Failure
from moorage.engines.launch import ContainerSpec, planned_workload
from moorage.engines.ray_serve import (
    AppState,
    AppStatus,
    ReplicaLog,
    app_state,
    with_application,
    without_application,
)
from moorage.engines.workload import Workload

POLL_SECONDS = 0.5
END_SECONDS = 30.0
"""Extra time to wait until an application is deleted; Ray completes the deletion by itself."""

ENDED = frozenset({AppStatus.DEPLOY_FAILED, AppStatus.UNHEALTHY, AppStatus.DELETING})


class RayRuntime:
    """Ray Serve on one cluster.

    Args:
        config_lock: Locks the cluster's config among processes of the same ledger. Two processes
            that read, change and replace it at the same time would undo each other's change.
    """

    def __init__(
        self, address: str, config_lock: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._dashboard, self._config_lock = RayDashboard(address), config_lock

    def start(self, spec: ContainerSpec, secrets: Mapping[str, str]) -> Workload:  # noqa: ARG002
        """Add the application to the config, or update it if it belongs to the same release."""
        if spec.application is None:
            raise Failure(Cause.LAUNCH_REFUSED, f"{spec.name} is no application of Ray Serve")
        workload = planned_workload(spec).model_copy(update={"identity": spec.name})
        with self._config_lock():
            details = self._dashboard.details()
            known = app_state(details, spec.name)
            if known and _is_foreign(known, workload):
                raise Failure(
                    Cause.LAUNCH_REFUSED,
                    f"{spec.host} has an application {spec.name} that this ledger does not know",
                    suggestion="Rename the model, or delete that application in Ray.",
                )
            self._dashboard.put(with_application(details, spec.application.config))
        return workload

    def observe(self, workload: Workload) -> Observation:
        """The application's status, as Ray reports it."""
        state = app_state(self._dashboard.details(), workload.name)
        if state is None:
            return Observation(running=False, detail="the application is gone from the cluster")
        message = state.message.partition("\n")[0]
        return Observation(
            running=state.status not in ENDED,
            ready=state.status == AppStatus.RUNNING,
            detail=f"the application is {state.status}{f': {message}' if message else ''}",
        )

    def logs(self, workload: Workload, tail: int) -> str:
        """The cluster's message about the application, and the logs of its replicas; redacted."""
        state = app_state(self._dashboard.details(), workload.name)
        if state is None:
            return ""
        return redact("\n".join([state.message, *(self._log(log, tail) for log in state.logs)]))

    def stop(self, workload: Workload, grace_seconds: float) -> None:
        """Remove the application from the config; Ray deletes it once its requests have ended."""
        with self._config_lock():
            details = self._dashboard.details()
            state = app_state(details, workload.name)
            if state is None or _is_foreign(state, workload):
                return
            if state.status != AppStatus.DELETING:
                self._dashboard.put(without_application(details, workload.name))
        give_up = time.monotonic() + grace_seconds + END_SECONDS
        while app_state(self._dashboard.details(), workload.name):
            if time.monotonic() > give_up:
                return
            time.sleep(POLL_SECONDS)

    def _log(self, log: ReplicaLog, tail: int) -> str:
        """Log of a replica; empty if Ray cannot give it, for example after the replica's end."""
        with suppress(Failure):
            return self._dashboard.log(log, tail)
        return ""


def _is_foreign(state: AppState, workload: Workload) -> bool:
    is_own = (state.release, state.ledger) == (workload.release, workload.ledger)
    return state.status != AppStatus.DELETING and not is_own
