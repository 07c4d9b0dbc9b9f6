"""An engine that other machines reach asks for a key, and moorage knows it."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from tests.e2e.conftest import container_engine, process_engine
from tests.e2e.workplace import Workplace

pytestmark = pytest.mark.server


@pytest.fixture
def exposed(workplace: Workplace) -> Workplace:
    """This machine, as other machines reach it."""
    fleet = workplace.folder / "fleet.yaml"
    fleet.write_text(fleet.read_text().replace("name: local", "name: local, bind: 0.0.0.0"))
    return workplace


@pytest.mark.docker
def test_releases_and_replicas_share_a_key_that_the_commands_use(
    exposed: Workplace, lifecycle_image: str
) -> None:
    engine = container_engine(lifecycle_image)
    spec = exposed.spec(engine=engine, replicas=2)
    name = exposed.named("tiny")
    release = exposed.json("deploy", spec)["release"]
    key = exposed.run("key", "show", name).stdout.strip()
    assert exposed.json("key", "show", name)["key"] == key
    assert key not in json.dumps(release)
    for workload in release["workloads"]:
        assert status(workload["endpoint"]) == 401
        assert status(workload["endpoint"], "Bearer wrong") == 401
        assert status(workload["endpoint"], f"Bearer {key}") == 200
    assert exposed.run("chat", name, "hello").stdout.strip() == "ok"
    assert exposed.run("chat", name, "hello", "--api-key", "wrong", code=6)

    spec = exposed.spec(engine=engine, context=512)
    (workload,) = exposed.json("deploy", spec)["release"]["workloads"]
    assert status(workload["endpoint"], f"Bearer {key}") == 200

    spec = exposed.spec(engine={**engine, "api_key": "none"})
    planned = exposed.run("plan", spec).stdout
    assert "everybody who reaches 0.0.0.0" in " ".join(planned.split())
    (workload,) = exposed.json("deploy", spec)["release"]["workloads"]
    assert status(workload["endpoint"]) == 200
    assert "needs no key" in exposed.run("key", "show", name, code=2).stderr


@pytest.mark.process
def test_without_an_api_the_key_is_a_file_of_this_user(
    exposed: Workplace, lifecycle_program: Path
) -> None:
    del exposed.environment["PREFECT_API_URL"]
    spec = exposed.spec(engine=process_engine(lifecycle_program))
    (workload,) = exposed.json("deploy", spec)["release"]["workloads"]
    (kept,) = (exposed.home / "keys").iterdir()
    assert kept.read_text() == exposed.run("key", "show", exposed.named("tiny")).stdout
    assert status(workload["endpoint"]) == 401
    assert status(workload["endpoint"], f"Bearer {kept.read_text().strip()}") == 200


def status(endpoint: str, authorization: str = "") -> int:
    headers = {"Authorization": authorization} if authorization else {}
    return httpx.get(f"{endpoint}/v1/models", headers=headers, trust_env=False).status_code
