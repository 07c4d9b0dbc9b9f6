"""Asking an engine over HTTP: what comes back, whatever happens on the way."""

from __future__ import annotations

import json
import socket
import threading
import time
import tracemalloc
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from threading import Event, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.adapters.engines.engine_http import MOST_LINE, ask, metrics_total, read_metrics
from moorage.common.units import MIB
from moorage.engines.vllm.arguments import IN_FLIGHT
from moorage.readiness.protocol import Phase, Probe

KEY = "open-sesame"
RELEASED = Event()
NAMES = (IN_FLIGHT.running, IN_FLIGHT.waiting)


class Engine(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/slow":
            RELEASED.wait(5)
        if self.path == "/guarded" and self.headers["Authorization"] != f"Bearer {KEY}":
            return self._answer(401, b"no key")
        return self._answer(200, json.dumps({"path": self.path}).encode())

    def do_POST(self) -> None:
        self._answer(200, self.rfile.read(int(self.headers["Content-Length"])))

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Engine)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    RELEASED.set()
    server.shutdown()


def get(path: str) -> Probe:
    return Probe(phase=Phase.HEALTHY, deadline="load_seconds", method="GET", path=path)


async def test_json_comes_back_as_data_and_the_rest_as_text(endpoint: str) -> None:
    assert await ask(endpoint, get("/health"), 5) == (200, {"path": "/health"})
    assert await ask(endpoint, get("/guarded"), 5) == (401, "no key")


async def test_a_key_is_sent_where_there_is_one(endpoint: str) -> None:
    assert await ask(endpoint, get("/guarded"), 5, KEY) == (200, {"path": "/guarded"})


async def test_a_body_is_sent_as_json(endpoint: str) -> None:
    probe = get("/v1/completions").model_copy(update={"method": "POST", "body": {"prompt": "x"}})
    assert await ask(endpoint, probe, 5) == (200, {"prompt": "x"})


async def test_a_sound_is_sent_as_a_form(endpoint: str) -> None:
    fields = {"method": "POST", "body": {"model": "tiny"}, "sound": b"RIFF"}
    status, form = await ask(endpoint, get("/sound").model_copy(update=fields), 5)
    assert status == 200
    assert 'name="model"\r\n\r\ntiny\r\n' in form
    assert 'name="file"; filename="tone.wav"\r\nContent-Type: audio/wav\r\n\r\nRIFF\r\n' in form


@pytest.mark.parametrize(("most", "status"), [(15, 200), (14, 0)])
async def test_a_probe_limits_its_answer(endpoint: str, most: int, status: int) -> None:
    fields = {"method": "POST", "body": {"prompt": "xx"}, "most_bytes": most}
    probe = get("/v1/completions").model_copy(update=fields)
    assert (await ask(endpoint, probe, 5))[0] == status


async def test_a_connection_that_is_accepted_counts(endpoint: str) -> None:
    listening = Probe(phase=Phase.LISTENING, deadline="load_seconds")
    assert (await ask(endpoint, listening, 5))[0] == 200


@pytest.mark.parametrize("method", ["", "GET"])
async def test_no_connection_is_told_with_its_reason(method: str) -> None:
    probe = get("/health").model_copy(update={"method": method})
    status, reason = await ask("http://127.0.0.1:1", probe, 5)
    assert status == 0
    assert reason


async def test_an_answer_that_takes_too_long_is_none(endpoint: str) -> None:
    assert (await ask(endpoint, get("/slow"), 0.05))[0] == 0


class Metrics(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/metrics" else 404)
        self.end_headers()
        self.wfile.write(b"vllm:num_requests_running 1.0\n")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Metrics)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_metrics_are_read_as_they_are(server: str) -> None:
    assert read_metrics(f"{server}/metrics", 5) == "vllm:num_requests_running 1.0\n"


def test_where_nobody_listens_nobody_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ConnectionError):
        read_metrics(f"http://127.0.0.1:{port}/metrics", 5)


def test_who_hangs_up_is_gone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        threading.Thread(target=lambda: listener.accept()[0].close(), daemon=True).start()
        with pytest.raises(ConnectionError):
            read_metrics(f"http://127.0.0.1:{port}/metrics", 5)


def test_who_does_not_answer_is_slow() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(TimeoutError):
            read_metrics(f"http://127.0.0.1:{port}/metrics", 0.05)


RUNNING = "vllm:num_requests_running"
METRICS = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a {b} c"} 3.0
vllm:num_requests_running{engine="1",model_name="a {b} c"} 1.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="a {b} c"} 2.0
vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 2.0
python_gc_objects_collected_total{generation="0"} 12345.0
"""


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (METRICS, 6),
        ("vllm:num_requests_running 0.0\nvllm:num_requests_waiting 0.0 1700000000", 0),
        ("vllm:num_requests_running 2", 2),
        ("vllm:num_requests_waiting_by_reason 2", None),
        ('{"detail": "Not Found"}', None),
        ("", None),
    ],
)
def test_what_is_in_flight_is_added_up_over_ranks_and_kinds(text: str, count: int | None) -> None:
    assert metrics_total(text, NAMES) == count


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("tokens_total", 11),
        ('tokens_total{mode="decode"}', 8),
        ('tokens_total{mode="decode",rank="1"}', 3),
        ('tokens_total{mode="encode"}', None),
        ("tokens", None),
    ],
)
def test_a_name_selects_label_sets(name: str, count: int | None) -> None:
    lines = (("decode", 0, 5), ("decode", 1, 3), ("prefill", 0, 3))
    text = "\n".join(f'tokens_total{{rank="{at}",mode="{mode}"}} {n}' for mode, at, n in lines)
    assert metrics_total(text, [name]) == count


@pytest.mark.parametrize(
    "value",
    [
        *("NaN", "+Inf", "-1", "1e999", "1e300", "many", "1_0", "0x10", "\u0665\u0665x"),
        *("9" * 5000, "9" * 900, "1 " + "9" * 900),
    ],
)
def test_what_is_no_count_tells_nothing(value: str) -> None:
    assert metrics_total(f"vllm:num_requests_running {value}", NAMES) is None
    mixed = f"vllm:num_requests_running 3\nvllm:num_requests_waiting {value}\n"
    assert metrics_total(mixed, NAMES) is None


LABELLED = RUNNING + "{" + ",".join(f'a{number}=""' for number in range(110))


@pytest.mark.parametrize(
    "piece",
    [
        LABELLED + "} 1\n",
        RUNNING + '{a="' + "x" * MOST_LINE + '"} 1\n',
        "\n",
        "x\n",
        "vllm:num_requests_running{",
        "vllm:num_requests_running{}\n",
        "} ",
        "{",
        "vllm:num_requests_running 1\n",
        'vllm:num_requests_running{a="b"} 1 \n',
    ],
)
def test_millions_of_lines_are_read_soon_and_in_little_memory(piece: str) -> None:
    text = "vllm:num_requests_running" * (piece == "{") + piece * (8 * MIB // len(piece))
    tracemalloc.start()
    began = time.thread_time()
    metrics_total(text, NAMES)
    assert time.thread_time() - began < 60  # a square of it would take hours
    assert tracemalloc.get_traced_memory()[1] < 16 * MIB
    tracemalloc.stop()


@pytest.mark.parametrize(
    "labels", ['a="b', 'a="x", ="y"', 'a="b",a="c"', 'a="' + "x" * MOST_LINE + '"']
)
def test_a_line_that_cannot_be_read_tells_nothing(labels: str) -> None:
    assert metrics_total(f"{RUNNING} 3\n{RUNNING}{{{labels}}} 0\n", NAMES) is None


@given(st.text())
def test_no_text_is_more_than_nothing_or_a_count(text: str) -> None:
    count = metrics_total(f"vllm:num_requests_running {text}", NAMES)
    assert count is None or count >= 0
