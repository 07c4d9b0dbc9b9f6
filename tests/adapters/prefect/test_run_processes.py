"""Runs of `moorage serve` begin at once: their processes have imported everything already."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.foreign_modules import foreign_modules

PROGRAM = """
import os, sys
from prefect import flow_engine
from moorage.adapters.prefect.run_processes import fork_runs

def is_prepared(served):
    os._exit(0 if os.getppid() != served and "flows.retire_model" in sys.modules else 1)

if __name__ == "__main__":
    fork_runs({"flows.retire_model"})
    assert "flows.retire_model" not in sys.modules
    context = flow_engine.multiprocessing.get_context("spawn")
    run = context.Process(target=is_prepared, args=(os.getpid(),))
    run.start()
    run.join()
    sys.exit(run.exitcode)
"""


def test_a_run_is_forked_off_a_process_that_has_imported_the_flows(tmp_path: Path) -> None:
    program = tmp_path / "served.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, program],
        cwd=foreign_modules(tmp_path / "project"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
