"""What asks engines ends in time and in little memory, whatever they send."""

from __future__ import annotations

import ast
import socket
import time
import tracemalloc
from pathlib import Path

import pytest

from moorage.adapters.engines.engine_http import (
    Late,
    NoAnswer,
    Question,
    Unreachable,
    Unusable,
    ask,
    ask_engine_now,
    connect,
    read_metrics,
)
from moorage.common.units import MIB
from moorage.readiness.answers import judge
from moorage.readiness.protocol import Phase, Probe
from tests.hostile_engine import MISBEHAVIOURS, HostileEngine

ROOT = Path(__file__).parents[3]
SECONDS = 0.4
HANG_SECONDS = 5.0
"""Nothing here may take so long; a deadline that does not hold takes for ever."""

TOO_LARGE = (Unusable, "the answer is larger than 4.0 MiB")
NO_HTTP = (Unusable, "the answer is no HTTP: ")
LATE = (Late, "no whole answer within 0.4 s")

FAILURES: dict[str, tuple[type[NoAnswer], str]] = {
    "sends for ever": TOO_LARGE,
    "promises 10 GB": TOO_LARGE,
    "sends chunks for ever": TOO_LARGE,
    "extends its chunks": NO_HTTP,
    "extends each chunk": LATE,
    "says continue for ever": LATE,
    "never ends its status": NO_HTTP,
    "never ends a header": NO_HTTP,
    "sends headers for ever": NO_HTTP,
    "sends trailers for ever": NO_HTTP,
    "drips its body": LATE,
    "drips its refusal": LATE,
    "drips a body without a length": LATE,
    "drips its headers": LATE,
    "drips its status": LATE,
    "drips chunks": LATE,
    "says nothing": LATE,
    "ends too soon": NO_HTTP,
    "has a negative length": NO_HTTP,
    "has two lengths": NO_HTTP,
    "has a length that is a word": NO_HTTP,
    "speaks HTTP 0.9": NO_HTTP,
    "switches protocols": NO_HTTP,
    "hangs up": (Unreachable, "Server disconnected"),
    "sends a bomb": (Unusable, "the answer is compressed (gzip), which was not requested"),
}

ODD = {
    "redirects": (302, "HTTP 302: "),
    "sends no UTF-8": (200, "'tiny' is not listed, but nothing"),
    "sends escapes": (200, "'tiny' is not listed, but nothing"),
    "nests lists": (200, "the answer is nested more than 64 deep"),
    "nests objects": (200, "the answer is nested more than 64 deep"),
    "never closes a list": (200, "the answer is nested more than 64 deep"),
    "lists a million": (200, "the answer has more than 250,000 values"),
    "counts beyond measure": (200, "the answer has a number of 100,000 digits, 99999999"),
    "counts to infinity": (200, "the answer has a number that is too large, 1e999"),
    "counts nothing": (200, "the answer has NaN, which is no number in JSON"),
    "sends half a character": (200, "the answer has half of a surrogate pair in a text"),
}


def test_every_misbehaviour_is_tried() -> None:
    assert {*FAILURES, *ODD} == set(MISBEHAVIOURS)


@pytest.mark.parametrize("misbehaviour", FAILURES)
def test_a_hostile_answer_is_a_failure_in_words_in_time_and_little_memory(
    misbehaviour: str,
) -> None:
    kind, words = FAILURES[misbehaviour]
    tracemalloc.start()
    with HostileEngine(misbehaviour) as engine:
        began = time.monotonic()
        with pytest.raises(kind) as failed:
            ask_engine_now(Question(engine.url), SECONDS if kind is Late else HANG_SECONDS)
        took, peak = time.monotonic() - began, tracemalloc.get_traced_memory()[1]
    # Not while threads of the engine run: that ends the interpreter now and then (CPython #128679).
    tracemalloc.stop()
    assert str(failed.value).startswith(words)
    assert str(failed.value).isprintable()
    assert len(str(failed.value)) < 300
    assert took < HANG_SECONDS
    assert peak < 32 * MIB


@pytest.mark.parametrize("misbehaviour", ODD)
async def test_an_odd_answer_is_told_in_words(misbehaviour: str) -> None:
    status, words = ODD[misbehaviour]
    probe = Probe(
        phase=Phase.LISTED, deadline="x", method="GET", path="/a", expects="listed", name="tiny"
    )
    with HostileEngine(misbehaviour) as engine:
        code, answer = await ask(engine.url, probe, HANG_SECONDS)
        assert code == status
        assert judge(probe, code, answer)[0].startswith(words)
        assert len(engine.requests) == 1  # no redirect is followed


@pytest.mark.parametrize("misbehaviour", FAILURES)
def test_hostile_metrics_are_none_or_come_too_late(misbehaviour: str) -> None:
    unusable = FAILURES[misbehaviour][0] is Unusable and "for ever" not in misbehaviour
    with HostileEngine(misbehaviour) as engine:
        began = time.monotonic()
        try:
            assert read_metrics(engine.url, HANG_SECONDS if unusable else 0.1) == ""
        except (TimeoutError, ConnectionError):
            assert not unusable
        assert time.monotonic() - began < HANG_SECONDS


async def test_tls_that_never_shakes_hands_is_late() -> None:
    with HostileEngine("says nothing") as engine:
        url = engine.url.replace("http://", "https://")
        probe = Probe(phase=Phase.HEALTHY, deadline="x", method="GET", path="/")
        assert await ask(url, probe, 0.2) == (0, "no whole answer within 0.2 s")


async def test_a_connection_that_is_never_made_is_late() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        with pytest.raises(Late, match=r"no connection within 0\.1 s"):
            await connect(f"http://127.0.0.1:{full.getsockname()[1]}", 0.1)
        for one in waiting:
            one.close()


async def test_a_question_from_inside_a_loop_is_answered_too() -> None:
    with HostileEngine("sends escapes") as engine:
        assert ask_engine_now(Question(engine.url), HANG_SECONDS).status == 200


CLIENTS = {"httpx", "httpx2", "requests", "aiohttp", "urllib3", "http.client", "urllib.request"}

ELSEWHERE = {
    "moorage/adapters/engines/engine_http.py": "engines",
    "moorage/adapters/engines/engine_stream.py": "engines, piece by piece",
    "moorage/adapters/engines/load_client.py": "engines, under load",
    "moorage/adapters/prefect/approvals.py": "Prefect's API",
    "flows/serving.py": "Prefect's API",
    "flows/notify.py": "services of notifications, through Prefect",
    "moorage/adapters/docker/limited_client.py": "the Docker daemon",
    "moorage/adapters/docker/connection.py": "the Docker daemon",
    "moorage/adapters/docker/container_states.py": "the Docker daemon",
    "moorage/adapters/gateway/admin.py": "Envoy",
    "moorage/adapters/gateway/envoy_folder.py": "Envoy",
    "moorage/adapters/gateway/host_folder.py": "Envoy, on another host",
    "moorage/adapters/gateway/folder_program.py": "Envoy, on its own host",
    "moorage/adapters/gateway/doorman.py": "engines, for callers of the gateway",
    "moorage/adapters/docker/helper_job.py": "the Docker daemon",
    "moorage/adapters/docker/helper_image.py": "the Docker daemon",
    "moorage/adapters/docker/image_list.py": "the Docker daemon",
    "moorage/adapters/hosts/host_diagnosis.py": "the Docker daemon",
    "moorage/adapters/hosts/remote_host.py": "the Docker daemon",
    "moorage/adapters/secrets.py": "Prefect's API",
    "moorage/adapters/system/open_telemetry.py": "a collector of traces",
    "moorage/adapters/system/os_errors.py": "the Docker daemon",
    "moorage/adapters/registry/registry.py": "registries",
    "moorage/adapters/system/guarded_http.py": "registries",
    "moorage/adapters/system/timed_http.py": "registries, and engines",
    "moorage/adapters/registry/connection.py": "registries",
    "moorage/adapters/sources/hub_client.py": "hubs",
    "moorage/adapters/transfer/mirror.py": "hubs, on remote hosts",
    "moorage/adapters/transfer/http_pool.py": "hubs",
    "moorage/adapters/transfer/http_answer.py": "hubs, and the Docker daemon",
    "moorage/adapters/prefect/api_login.py": "Prefect's API",
    "moorage/cli/flows.py": "Prefect's API",
    "moorage/cli/serve.py": "Prefect's API",
    "moorage/adapters/prefect/api_errors.py": "Prefect's API",
    "tasks/prefect_runs.py": "Prefect's API",
}
"""Who speaks HTTP, and with whom."""


def test_one_module_opens_http_to_engines() -> None:
    files = [file for top in ("moorage", "tasks", "flows") for file in (ROOT / top).rglob("*.py")]
    found = {str(file.relative_to(ROOT)) for file in files if CLIENTS & _imported(file)}
    assert found - set(ELSEWHERE) == set()


def _imported(file: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    clients = {name for name in names if not name.startswith("requests.exceptions")}
    return {name for one in clients for name in (one, one.partition(".")[0])}
