"""Servers that moorage starts where none is configured: of `serve`, and of single commands."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.workplace import REPOSITORY, Workplace
from tests.flows.conftest import own_workplace, without_empty
from tests.flows.requests import ENGINE

pytestmark = pytest.mark.server
workplace = own_workplace


def test_serve_says_what_to_do_when_the_port_is_taken(workplace: Workplace) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = subprocess.run(
            workplace.argv("serve", "--port", port),
            env=without_empty({**workplace.environment, "PREFECT_API_URL": ""}),
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 7
    message = " ".join(done.stderr.split())
    assert f"cannot listen on 127.0.0.1:{port}" in message
    assert f"PREFECT_API_URL=http://127.0.0.1:{port}/api" in message


@pytest.mark.parametrize("words", [["plan", "SPEC", "--json"], ["reconcile", "--json"]])
def test_a_command_needs_no_server_at_all(
    workplace: Workplace, tmp_path: Path, words: list[str]
) -> None:
    home = tmp_path / "prefect"
    alone = {"PREFECT_HOME": str(home), "PREFECT_API_URL": ""}
    spec = str(workplace.spec("alone", engine=ENGINE))
    done = subprocess.run(
        workplace.argv(*(spec if word == "SPEC" else word for word in words)),
        env=without_empty({**workplace.environment, **alone}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)
    assert home.exists() == (words[0] == "reconcile"), "a plan does not even import Prefect"


ANONYMOUS = """
import httpx
from prefect import flow, get_client
from moorage.cli.flows import run_flow

@flow
async def ask():
    async with get_client() as client:
        page = {"Origin": "http://evil.example"}
        refused = httpx.post(f"{client.api_url}block_documents/filter", json={}, headers=page)
        await client.read_flows()
        return refused.status_code, refused.headers.get("access-control-allow-origin")

print(run_flow(lambda: ask(return_state=True), 'flows.retire_model', as_json=True).result)
"""


def test_the_temporary_server_of_a_command_asks_for_a_login_too(
    workplace: Workplace, tmp_path: Path
) -> None:
    alone = {"PREFECT_HOME": str(tmp_path / "prefect"), "PREFECT_API_URL": ""}
    done = subprocess.run(
        [sys.executable, "-c", ANONYMOUS],
        env=without_empty({**workplace.environment, **alone}),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip().endswith("(401, None)"), done.stderr
