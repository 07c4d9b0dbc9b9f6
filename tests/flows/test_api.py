"""What docs/prefect.md says about requesting runs, tried with a real server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.workplace import REPOSITORY
from tests.flows.conftest import DEPLOYMENTS
from tests.prefect_server import PrefectServer

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("deployed")]

PAGE = (REPOSITORY / "docs" / "prefect.md").read_text()
ASKED = [
    (name, json.loads(body))
    for name, body in re.findall(r"^    ask (\S+) '(\{.*?\})'$", PAGE, re.MULTILINE | re.DOTALL)
]
(PYTHON,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def server(prefect_server: PrefectServer) -> Iterator[PrefectServer]:
    """A server that nobody serves; its runs are taken away before anybody does."""
    yield prefect_server
    for run in prefect_server.post("/flow_runs/filter", {}):
        if run["state"]["type"] == "SCHEDULED":
            prefect_server.delete(f"/flow_runs/{run['id']}")


def test_the_page_has_an_example_for_every_flow() -> None:
    flows = {name.partition("/")[0] for name in DEPLOYMENTS}
    assert {name.partition("/")[0] for name, _ in ASKED} == flows


@pytest.mark.parametrize(("name", "body"), ASKED, ids=[name for name, _ in ASKED])
def test_an_example_makes_one_run_however_often_it_is_sent(
    server: PrefectServer, name: str, body: dict[str, Any]
) -> None:
    first, second = server.ask(name, **body), server.ask(name, **body)
    assert first.status_code == 201, first.text
    assert first.json()["parameters"].items() >= body["parameters"].items()
    keyed = "idempotency_key" in body
    assert (second.status_code, second.json()["id"] == first.json()["id"]) == (
        200 if keyed else 201,
        keyed,
    )


def test_python_gets_the_run_that_curl_has_made(server: PrefectServer) -> None:
    (body,) = (body for name, body in ASKED if name == "deploy-model/deploy")
    made = server.ask("deploy-model/deploy", **body).json()["id"]
    done = subprocess.run(
        [sys.executable, "-c", PYTHON],
        env={**os.environ, **server.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == made, done.stderr


@pytest.mark.parametrize(
    ("name", "parameters", "field", "detail"),
    [
        (
            "deploy-model/deploy",
            {"spec": {"name": "x"}},
            "spec",
            "'source' is required, but missing",
        ),
        ("plan-model/plan", {}, "parameters", "'spec' is required, but missing"),
        ("apply-models/apply", {"specs": [], "at_once": 0}, "at_once", "less than the minimum"),
        ("apply-models/apply", {"specs": [{"name": "x"}]}, "specs[0]", "'source' is required"),
        ("redeploy-models/redeploy", {"wave": "many"}, "wave", "found 'many'"),
        ("redeploy-models/redeploy", {"stop_at": "later"}, "stop_at", "allowed: first, never"),
        ("rollback-model/rollback", {"name": "x", "dry_run": "no"}, "dry_run", "boolean"),
        ("reconcile-fleet/reconcile", {"fleet": {"hosts": "all"}}, "fleet.hosts", "array"),
        ("retire-model/retire", {"name": "a b"}, "name", "allowed: letters, digits"),
        ("load-adapter/load-adapter", {"model": "x", "adapter": "legal"}, "adapter", "object"),
        ("unload-adapter/unload-adapter", {"model": "x"}, "parameters", "'adapter' is required"),
        ("retire-model/retire", {"name": "x", "nmae": "y"}, "nmae", "unknown key"),
        ("reconcile-fleet/reconcile", {"dryrun": True}, "dryrun", "Did you mean 'dry_run'?"),
        ("retire-model/retire", {"name": "x", "requested_by": "a\nb"}, "requested_by", "control"),
        ("retire-model/retire", {"name": "x", "requested_by": "a" * 201}, "requested_by", "long"),
        ("notify/notify", {"subject": 1, "body": "x"}, "subject", "string"),
    ],
)
def test_a_wrong_parameter_is_refused_with_its_path(
    server: PrefectServer, name: str, parameters: dict[str, Any], field: str, detail: str
) -> None:
    refusal = server.ask(name, parameters)
    assert refusal.status_code == 409
    message = refusal.json()["detail"]
    assert message.startswith(f"Error creating flow run: {field}: ")
    assert detail in message


def test_a_body_that_is_none_is_refused(server: PrefectServer) -> None:
    refusal = server.ask("retire-model/retire", ["llama"])  # type: ignore[arg-type]
    assert refusal.status_code == 422
    assert "parameters" in refusal.text
