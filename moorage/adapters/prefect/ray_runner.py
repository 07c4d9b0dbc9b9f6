"""Prefect's task runner for Ray; a cluster that cannot be used is a failure with a cause."""

from __future__ import annotations

import os
from typing import Self

from prefect_ray import RayTaskRunner

from moorage.common.failures import Cause, Failure


class RayRunner(RayTaskRunner):  # type: ignore[misc]  # an extra, so nothing is known of it
    """The cluster of `RAY_ADDRESS`, or one that lives as long as the flow run."""

    def __enter__(self) -> Self:
        try:
            super().__enter__()
        except Exception as error:
            where = os.environ.get("RAY_ADDRESS") or "of this run"
            raise Failure(
                Cause.SERVER_UNAVAILABLE,
                f"the Ray cluster {where} cannot be used: {error}",
                suggestion="Check RAY_ADDRESS, and that the cluster has the same Ray and Python; or"
                " leave MOORAGE_TASK_RUNNER unset.",
            ) from error
        return self
