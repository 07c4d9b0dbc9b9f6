from __future__ import annotations

from tests.homes import own_home
from tests.prefect_server import flows_run_there, runs_server

__all__ = ["flows_run_there", "own_home", "runs_server"]
