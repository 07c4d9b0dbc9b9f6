"""`make up` without containers: one server of a team, Prefect and the ledger both in PostgreSQL."""

from __future__ import annotations

import re
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from sqlalchemy import create_engine, text

from tests.e2e.conftest import process_engine
from tests.flows.requests import Parameters
from tests.team.conftest import Team, TeamPlace
from tests.waiting import until

pytestmark = [pytest.mark.server, pytest.mark.process]


@pytest.fixture(scope="module")
def up(team: Team) -> Iterator[Team]:
    started = team.run("up")
    assert started.returncode == 0, started.stderr
    yield team
    stopped = team.run("down")
    assert stopped.returncode == 0, stopped.stderr


@pytest.fixture
def place(up: Team, tmp_path: Path, tiny_llama: Path) -> Iterator[TeamPlace]:
    place = TeamPlace(tmp_path, tiny_llama, up)
    yield place
    place.close()


def rows(team: Team, database: str, question: str) -> list[Any]:
    """What a database of the team's PostgreSQL answers to its own role."""
    password = dict(zip(("postgres", "prefect", "moorage"), team.passwords(), strict=True))
    at = f"{database}:{password[database]}@127.0.0.1:{team.postgres_port}"
    engine = create_engine(f"postgresql+psycopg://{at}/{database}")
    with engine.connect() as connection:
        found = list(connection.execute(text(question)).scalars())
    engine.dispose()
    return found


def test_a_model_is_deployed_through_the_api_and_both_databases_know_it(
    up: Team, place: TeamPlace, lifecycle_program: Path
) -> None:
    parameters = Parameters(place)("tiny", engine=process_engine(lifecycle_program))
    done = up.api.run("deploy-model/deploy", parameters)
    assert done["state"]["type"] == "COMPLETED", done["state"]["message"]
    endpoint = re.search(r"http://[\d.:]+", done["state"]["message"])
    assert endpoint
    assert httpx.get(f"{endpoint[0]}/health").status_code == 200

    name = place.named("tiny")
    assert rows(up, "moorage", f"SELECT state FROM releases WHERE model = '{name}'") == ["running"]
    query = f"SELECT name FROM flow_run WHERE id = '{done['id']}'"
    assert rows(up, "prefect", query) == [f"deploy {name}"]
    assert place.json("status", name)[0]["id"] == f"{name}.v1"
    # The server writes what it hears of tasks each second, and so after the end of their run.
    query = f"SELECT name FROM task_run WHERE flow_run_id = '{done['id']}'"
    tasks = {"survey the fleet", f"launch {name}.v1"}
    until(lambda: tasks <= set(rows(up, "prefect", query)))
    place.run("retire", name)
    assert place.is_clean()


def test_no_password_is_seen_by_others(up: Team) -> None:
    output = [path.read_text(errors="replace") for path in up.folder.glob("*.log")]
    assert output
    arguments = [" ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"])]
    for password in up.passwords():
        assert len(password) == 32
        assert not any(password in text for text in (*output, *arguments))
        assert password not in (up.folder / "environment").read_text()
    login = up.login.partition(":")[2]
    assert not any(login in text for text in (*output, *arguments))
    for file in ("pgpass", "environment", "api/login"):
        assert stat.S_IMODE((up.folder / file).stat().st_mode) == 0o600


def test_the_server_asks_for_a_login_and_answers_to_its_own_names(up: Team) -> None:
    path = f"{up.api.url}/deployments/name/deploy-model/deploy"
    user, _, password = up.login.partition(":")
    assert httpx.get(path).status_code == 401
    assert httpx.get(path, auth=(user, password)).status_code == 200
    for header in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        assert httpx.get(path, auth=(user, password), headers=header).status_code == 403
    assert up.sourced()["PREFECT_API_AUTH_STRING"] == up.login


def test_only_this_machine_reaches_it(up: Team) -> None:
    listening = {
        connection.laddr.ip
        for connection in psutil.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
        and connection.laddr
        and connection.laddr.port in (up.port, up.postgres_port)
    }
    assert listening == {"127.0.0.1"}


def test_neither_role_reads_the_others_database(up: Team) -> None:
    password = up.passwords()[-1]
    at = f"moorage:{password}@127.0.0.1:{up.postgres_port}/prefect"
    with pytest.raises(Exception, match="permission denied for database"):
        create_engine(f"postgresql+psycopg://{at}").connect()


def test_up_again_changes_nothing(up: Team) -> None:
    before = {path.name: path.read_text() for path in up.folder.glob("*.pid")}
    again = up.run("up")
    assert again.returncode == 0, again.stderr
    assert {path.name: path.read_text() for path in up.folder.glob("*.pid")} == before
    assert len(before) == 3


def test_a_taken_port_is_told_and_nothing_is_left_running(tmp_path: Path, team: Team) -> None:
    other = Team(tmp_path)
    tmp_path.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        other.postgres_port = taken.getsockname()[1]
        failed = other.run("up")
    assert failed.returncode == 1
    assert f"port {other.postgres_port}: Address already in use" in failed.stderr
    assert "make up UP='--postgres-port PORT'" in failed.stderr
    assert list(other.folder.glob("*.pid")) == []
    assert team.folder != other.folder


def test_down_stops_all_and_keeps_the_data(team: Team, up: Team) -> None:
    stopped = team.run("down")
    assert stopped.returncode == 0
    for name in ("moorage serve", "Prefect server", "PostgreSQL"):
        assert f"{name}: stopped" in stopped.stderr
    for port in (team.port, team.postgres_port):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
    assert (up.folder / "postgres" / "PG_VERSION").exists()
    assert team.run("down").stderr == ""
