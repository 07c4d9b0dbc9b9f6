"""`moorage serve`: the folder it serves, the code it sends to runs, the pools it takes from."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import cloudpickle
import pytest
import typer
from prefect import Flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import DeploymentScheduleCreate, WorkPoolCreate
from prefect.client.schemas.schedules import CronSchedule
from prefect.flows import load_flow_from_entrypoint

from flows.serving import pools_of
from moorage.adapters.prefect.deployment_file import deployments_of
from moorage.adapters.prefect.schedules import remove_other_schedules
from moorage.cli.serve import project_file, served_folder
from tests.e2e.workplace import REPOSITORY

FILE = REPOSITORY / "prefect.yaml"


def test_the_file_of_this_folder_goes_before_that_of_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert project_file() == FILE
    (tmp_path / "prefect.yaml").touch()
    assert project_file() == tmp_path / "prefect.yaml"


def test_a_folder_with_specs_offers_its_own_though_the_flows_are_those_of_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert served_folder(project_file()) == FILE.parent
    (tmp_path / "deployments").mkdir()
    assert (project_file(), served_folder(project_file())) == (FILE, tmp_path)


def test_no_file_at_all_is_a_clear_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("moorage.cli.serve.flows.__file__", str(tmp_path / "flows" / "x.py"))
    with pytest.raises(typer.BadParameter, match=r"has no prefect\.yaml"):
        project_file()


LOAD = """
import os, pickle, sys, traceback
import cloudpickle, docker, prefect.flow_engine, ruamel.yaml, sqlalchemy.orm

for entrypoint, flow in pickle.load(sys.stdin.buffer).items():
    child = os.fork()
    if not child:
        try:
            cloudpickle.loads(flow)
        except BaseException:
            print(entrypoint, traceback.format_exc(), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def test_every_flow_can_be_sent_to_the_process_that_runs_it() -> None:
    """Each is loaded where no other one was, and nothing of moorage."""
    sent = {}
    for entrypoint in {str(one.entrypoint) for one in deployments_of(FILE)}:
        code: Flow[..., Any] = load_flow_from_entrypoint(entrypoint, use_placeholder_flow=False)
        sent[entrypoint] = cloudpickle.dumps(code)
    words = [sys.executable, "-c", LOAD]
    loaded = subprocess.run(words, input=pickle.dumps(sent), capture_output=True, check=True)
    assert loaded.stdout.decode() == ""


@pytest.mark.server
@pytest.mark.usefixtures("flows_run_there")
async def test_the_work_pools_that_lose_deployments_are_known() -> None:
    name, pool = f"of-a-pool-{uuid4().hex[:8]}", f"pool-{uuid4().hex[:8]}"
    async with get_client() as client:
        await client.create_work_pool(WorkPoolCreate(name=pool, type="process"))
        flow = await client.create_flow_from_name("taken")
        await client.create_deployment(flow, name, work_pool_name=pool)
        await client.create_deployment(flow, f"{name}-served")
    assert await pools_of([name, f"{name}-served"]) == [pool]
    assert await pools_of([f"{name}-served"]) == []


@pytest.mark.server
@pytest.mark.usefixtures("flows_run_there")
async def test_the_schedules_that_left_the_file_go_and_those_of_models_stay() -> None:
    made = [
        DeploymentScheduleCreate(slug=slug, schedule=CronSchedule(cron="0 3 * * *"))
        for slug in ("nightly", "each-night", "moorage.tiny")
    ]
    async with get_client() as client:
        flow = await client.create_flow_from_name("scheduled")
        name = f"of-a-file-{uuid4().hex[:8]}"
        deployment = await client.create_deployment(flow, name, schedules=made)
        await remove_other_schedules(deployment, {"each-night"})
        left = await client.read_deployment_schedules(deployment)
    assert {one.slug for one in left} == {"each-night", "moorage.tiny"}
