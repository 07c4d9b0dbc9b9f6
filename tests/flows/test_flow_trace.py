"""The trace of a flow run, as a collector of OpenTelemetry gets it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prefect import flow

from flows.flow_context import flow_context
from flows.retire_model import retire_model
from moorage.adapters.system import flow_trace
from moorage.common.failures import Cause, Failure
from tasks.journal import failure_of, step
from tests.hostile_engine import HostileEngine

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("flows_run_there", "own_home")]

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
OK, ERROR = 1, 2
"""Codes of a status."""

ROUNDED = 1_000_000
"""Nanoseconds to which the duration of a step is rounded."""


class Collector(ThreadingHTTPServer):
    """Keeps what it gets."""

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def spans(self) -> list[Any]:
        """The spans of its only request."""
        (request,) = self.requests
        (service,) = request.resource_spans
        names = {one.key: one.value.string_value for one in service.resource.attributes}
        assert names["service.name"] == "moorage"
        return [span for scope in service.scope_spans for span in scope.spans]


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        assert self.path == "/v1/traces"
        self.server.requests.append(ExportTraceServiceRequest.FromString(body))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with Collector() as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        monkeypatch.setenv(ENDPOINT, found.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
        yield found
        found.shutdown()


@flow(name="stepping", persist_result=False)
async def stepping(*, fails: bool) -> str:
    async with flow_context("tiny") as context:
        context.release = "tiny.v1"
        with step("resolve") as note:
            note.say("5 files")
        with step("verify"):
            if fails:
                raise Failure(Cause.NO_FIT, "it is much too large")
        return context.flow_run_id


def attributes(span: Any) -> dict[str, str]:
    return {one.key: one.value.string_value for one in span.attributes}


def test_a_run_is_one_trace_and_each_step_a_span_in_it(collector: Collector) -> None:
    run_id = asyncio.run(stepping(fails=False))
    run, resolve, verify = collector.spans
    assert [one.name for one in (run, resolve, verify)] == ["stepping", "resolve", "verify"]
    assert attributes(run) == {
        "prefect.flow_run.id": run_id,
        "moorage.model": "tiny",
        "moorage.release": "tiny.v1",
    }
    assert attributes(resolve) == {"moorage.summary": "5 files"}
    assert {one.trace_id for one in (resolve, verify)} == {run.trace_id}
    assert {one.parent_span_id for one in (resolve, verify)} == {run.span_id}
    assert not run.parent_span_id
    for one in (resolve, verify):
        assert run.start_time_unix_nano - ROUNDED <= one.start_time_unix_nano
        assert one.start_time_unix_nano <= one.end_time_unix_nano <= run.end_time_unix_nano
    assert {one.status.code for one in (run, resolve, verify)} == {OK}


def test_what_failed_says_by_which_cause_and_nothing_more(collector: Collector) -> None:
    with pytest.raises(Failure):
        asyncio.run(stepping(fails=True))
    run, resolve, verify = collector.spans
    assert [one.status.code for one in (run, resolve, verify)] == [ERROR, OK, ERROR]
    assert {one.status.message for one in (run, verify)} == {"no-fit"}
    assert "too large" not in str(collector.requests)


def test_a_flow_of_moorage_is_traced_too(collector: Collector) -> None:
    with pytest.raises(Failure):
        asyncio.run(retire_model("nobody"))
    run, *_ = collector.spans
    assert (run.name, run.status.message) == ("retire-model", "unknown-release")


def test_without_a_collector_nothing_is_sent(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(ENDPOINT)
    assert asyncio.run(stepping(fails=False))
    assert not collector.requests


def test_a_collector_that_is_away_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    assert asyncio.run(stepping(fails=False))


@pytest.mark.parametrize(
    ("misbehaviour", "limit", "expected"),
    [
        ("drips its headers", 3.0, [flow_trace.NOT_TAKEN]),
        ("drips its body", 10.0, []),  # for 20 s
        ("sends for ever", 10.0, []),
    ],
)
def test_a_collector_that_answers_without_end_is_left(
    monkeypatch: pytest.MonkeyPatch, misbehaviour: str, limit: float, expected: list[str]
) -> None:
    monkeypatch.setattr(flow_trace, "SEND_SECONDS", limit)
    problems = list[str]()
    with HostileEngine(misbehaviour) as collector:
        monkeypatch.setenv(ENDPOINT, collector.url)
        asyncio.run(asyncio.wait_for(trace_nothing(problems), 15))
        assert collector.requests == ["POST /v1/traces HTTP/1.1"]
    assert problems == expected


def test_a_cancelled_run_waits_for_no_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_trace, "SEND_SECONDS", 600.0)
    with HostileEngine("drips its headers") as collector:
        monkeypatch.setenv(ENDPOINT, collector.url)
        with pytest.raises(TimeoutError):
            asyncio.run(asyncio.wait_for(trace_nothing([]), 1))


async def trace_nothing(problems: list[str]) -> None:
    trace = flow_trace.FlowTrace("nothing", failure_of)
    async with trace.sent(dict, problems.append):
        pass
