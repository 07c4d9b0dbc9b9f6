"""Commands without a configured server: the one that they start is kept, and may be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from moorage.adapters.prefect.home_server import RunningServer, running_server, stop_server
from moorage.cli.fork_server import fork_server_process
from moorage.common.failures import ExitCode
from tests.e2e.conftest import process_engine
from tests.e2e.workplace import Workplace
from tests.waiting import PATIENCE_SECONDS, until

SERVERS = {"moorage.adapters.prefect.api_server", "moorage.cli.fork_server"}

pytestmark = [pytest.mark.process, pytest.mark.server]


@pytest.fixture
def alone(workplace: Workplace, tmp_path: Path) -> Iterator[Workplace]:
    """A workplace that knows of no server."""
    variables = {
        name: value
        for name, value in workplace.environment.items()
        if name not in ("PREFECT_API_URL", "PREFECT_API_AUTH_STRING")
    }
    own = {"PREFECT_HOME": str(tmp_path / "prefect"), "PREFECT_CLIENT_MAX_RETRIES": "0"}
    workplace.environment = {**variables, **own, "MOORAGE_SERVER": "kept", "MOORAGE_FORKED": "1"}
    yield workplace
    stop_server(workplace.home)


def server_of(place: Workplace) -> RunningServer:
    server = running_server(place.home)
    assert server
    return server


def test_the_server_is_kept_killed_and_started_anew(
    alone: Workplace, lifecycle_program: Path
) -> None:
    spec = alone.spec(engine=process_engine(lifecycle_program))
    alone.run("deploy", spec)
    server = server_of(alone)
    record = alone.json("show", alone.named("tiny"))
    pages = server.url.removesuffix("/api")
    url = record["states"][0]["flow_run_url"]
    assert url == f"{pages}/v2/runs/flow-run/{record['flow_run_id']}"
    assert httpx.get(pages).is_success
    assert alone.json("server", "status")["url"] == server.url

    forking = until(lambda: fork_server_process(alone.home))
    until((alone.home / "api" / "commands").exists)
    again = alone.spec(engine=process_engine(lifecycle_program), labels={"by": "a fork"})
    command = [sys.executable, "-m", "moorage.cli", "deploy", str(again)]
    with subprocess.Popen(command, env=alone.environment, stderr=subprocess.PIPE) as forked:
        until(psutil.Process(forking).children)
        _, said = forked.communicate()
        assert forked.returncode == 0, said

    slow = alone.spec("slow", engine=process_engine(lifecycle_program, "deaf"))
    deploying = alone.start("deploy", slow, "--json")
    until(lambda: any(alone.named("slow") in name for name in alone.running()))
    assert server_of(alone) == server, "the second command uses the first one's"
    os.kill(server.process.pid, signal.SIGKILL)
    deploying.send_signal(signal.SIGINT)
    reply, errors = deploying.communicate(timeout=PATIENCE_SECONDS)
    assert deploying.returncode not in (0, ExitCode.INTERNAL), errors
    assert json.loads(reply)["error"]["cause"]
    assert "Traceback" not in errors

    alone.run("reconcile")
    assert server_of(alone).process != server.process
    alone.run("retire", alone.named("tiny"))
    assert alone.run("server", "stop").stdout.startswith("ended http://127.0.0.1:")
    assert alone.json("server", "status") == {"running": False, "forking_pid": None}
    until(lambda: not _servers(alone))


def _servers(place: Workplace) -> list[psutil.Process]:
    """Processes that use the home of Prefect of this test."""
    own = place.environment["PREFECT_HOME"]
    return [
        one
        for one in psutil.process_iter(["environ", "cmdline"])
        if (one.info["environ"] or {}).get("PREFECT_HOME") == own
        and SERVERS.intersection(one.info["cmdline"])
    ]
