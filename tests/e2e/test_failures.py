"""What goes wrong ends in one clear cause, with nothing left claimed or running."""

from __future__ import annotations

import re
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import process_engine
from tests.e2e.workplace import Workplace
from tests.prefect_server import free_port
from tests.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.server]

HURRY = {"deadlines": {"load_seconds": 2, "warm_up_seconds": 2}}


@pytest.mark.parametrize(
    ("behaviour", "cause", "tells"),
    [
        ("die", "engine-unsupported-model", "FooForCausalLM"),
        ("exit0", "engine-exited", "exited with code 0"),
        ("unhealthy", "load-timeout", "HTTP 503"),
        ("deaf", "load-timeout", "not listening within 2 s"),
        ("unlisted", "warm-up-timeout", "is not listed"),
        ("mute", "bad-answer", "finish reason 'abort'"),
        ("portclash", "port-taken", "Address already in use"),
        ("kv", "engine-kv-cache-too-small", "2048"),
    ],
)
def test_an_engine_that_fails(
    workplace: Workplace, lifecycle_program: Path, behaviour: str, cause: str, tells: str
) -> None:
    spec = workplace.spec(engine=process_engine(lifecycle_program, behaviour), readiness=HURRY)

    error = workplace.json("deploy", spec, code=None)["error"]

    assert error["cause"] == cause
    assert tells in f"{error['detail']} {error['suggestion']}"
    assert error["suggestion"]
    assert workplace.is_clean()
    row = workplace.releases()[0]
    assert (row.state, row.cause) == ("error", cause)
    assert row.release is not None
    assert row.release.failure is not None
    artifact = _failure_artifact(workplace)
    assert cause in artifact
    assert row.release.failure.log_tail.splitlines()[-1] in artifact
    assert _flow_run(workplace, row.flow_run_id)["state"]["type"] == "FAILED"


def test_a_model_that_fits_nowhere(workplace: Workplace, lifecycle_program: Path) -> None:
    spec = workplace.spec(engine=process_engine(lifecycle_program), placement={"ram": "900TiB"})
    error = workplace.json("deploy", spec, code=3)["error"]
    assert error["cause"] == "no-fit"
    assert "local: ram: RAM: 900.0 TiB needed" in error["detail"]
    assert workplace.is_clean()


def test_a_port_that_is_bound_already(workplace: Workplace, lifecycle_program: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        spec = workplace.spec(engine=process_engine(lifecycle_program), port=port)
        error = workplace.json("deploy", spec, code=7)["error"]
    assert error["cause"] == "port-taken"
    assert f"port {port}: something else listens there" in error["detail"]
    assert workplace.is_clean()


def test_another_engine_that_takes_the_port_while_ours_loads_proves_nothing(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    port = free_port()
    strangers: list[subprocess.Popen[bytes]] = []

    def intrude() -> None:
        until(lambda: [*workplace.home.glob("run/*/state.json")])
        command = [lifecycle_program, "serve", "x", "--host", "127.0.0.1", "--port", port]
        command += ["--served-model-name", workplace.named("tiny")]
        strangers.append(subprocess.Popen([str(word) for word in command]))

    thread = threading.Thread(target=intrude)
    thread.start()
    spec = workplace.spec(engine=process_engine(lifecycle_program, "deaf"), port=port)
    try:
        error = workplace.json("deploy", spec, code=7)["error"]
    finally:
        thread.join()
        for stranger in strangers:
            stranger.kill()
            stranger.wait()
    assert error["cause"] == "port-taken"
    assert f"process {strangers[0].pid} (vllm) listens" in error["detail"]
    assert workplace.is_clean()


def test_a_model_whose_files_are_missing(workplace: Workplace, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    cases = {
        "nowhere": "source-missing",
        "empty": "source-incomplete",
    }
    for folder, cause in cases.items():
        spec = workplace.spec(source=f"file://{tmp_path / folder}")
        assert workplace.json("deploy", spec, code=4)["error"]["cause"] == cause
    assert workplace.is_clean()


def test_three_mistakes_are_told_at_once_and_nothing_is_touched(workplace: Workplace) -> None:
    spec = workplace.spec(engine={"name": "vlm"}, replicas=0, placement={"acelerators": 1})
    done = workplace.run("deploy", spec, code=2)
    for path in ("engine.name", "replicas", "placement.acelerators"):
        assert re.search(rf"{spec}:\d+:\d+: {re.escape(path)}: ", done.stderr)
    assert "Did you mean 'vllm'?" in done.stderr
    assert not workplace.home.exists()


def _failure_artifact(workplace: Workplace) -> str:
    body = {"artifacts": {"key": {"any_": [f"failure-{workplace.named('tiny')}"]}}}
    found = _ask(workplace, "/artifacts/filter", body)
    assert found
    return str(found[0]["data"])


def _flow_run(workplace: Workplace, identity: str) -> Any:
    return _ask(workplace, "/flow_runs/filter", {"flow_runs": {"id": {"any_": [identity]}}})[0]


def _ask(workplace: Workplace, path: str, body: dict[str, Any]) -> Any:
    given = workplace.environment
    user, _, password = given["PREFECT_API_AUTH_STRING"].partition(":")
    login, url = (user, password), given["PREFECT_API_URL"] + path
    response = httpx.post(url, json=body, auth=login, timeout=30)
    response.raise_for_status()
    return response.json()
