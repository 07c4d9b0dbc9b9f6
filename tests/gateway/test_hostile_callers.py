"""What callers try at a real Envoy: paths, methods and forms that are not what clients send."""

from __future__ import annotations

import http.client
import json
import time
from typing import Any

import httpx
import pytest

from tests.gateway.conftest import RunningGateway
from tests.gateway.engine import TestEngine
from tests.gateway.tables import backend, key, model
from tests.waiting import until

pytestmark = pytest.mark.process

JSON = {"content-type": "application/json"}
CONTROLS = [
    "/sleep?level=2",
    "/wake_up",
    "/collective_rpc",
    "/release_kv_cache_memory",
    "/update_weights",
    "/reset_prefix_cache",
    "/abort_requests",
    "/pause",
    "/scale_elastic_ep",
    "/start_profile",
    "/server_info",
]
"""Paths of vLLM 0.32 that are for operators; most need `VLLM_SERVER_DEV_MODE`."""


def raw(gateway: RunningGateway, method: str, path: str, body: object) -> int:
    """The status of a request whose path is sent as it stands."""
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=30)
    connection.request(method, path, json.dumps(body), JSON)
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.parametrize(
    "path",
    [
        "/v1/load_lora_adapter",
        "/v1/unload_lora_adapter",
        "/v1/load_lora_adapter/",
        "/v1/load_lora_adapter?x=1",
        "/v1/%6coad_lora_adapter",
        "/v1//load_lora_adapter",
        "/v1/x/../load_lora_adapter",
        "/models/llama/v1/load_lora_adapter",
        "/v1/x%2f..%2fload_lora_adapter",
        "/v1/x%5c..%5cload_lora_adapter",
    ],
)
def test_no_caller_changes_what_an_engine_serves(gateway: RunningGateway, path: str) -> None:
    with TestEngine("one") as engine:
        gateway.serve(model("llama", backend("llama-1", engine.port)))
        body = {"model": "llama", "lora_name": "sql", "lora_path": "/etc"}
        assert raw(gateway, "POST", path, body) == 404
    assert engine.requests == []


@pytest.mark.parametrize(
    "path",
    [
        "/v1/../metrics",
        "/v1/%2e%2e/metrics",
        "/v1/a/../../metrics",
        "/v1/..%2fmetrics",
        "/v1/%2e%2e%2Fmetrics",
        "/v1/a%2f..%2f..%2fmetrics",
        "/v1/..%5cmetrics",
        "/models/llama/v1/..%2fmetrics",
    ],
)
def test_no_caller_leaves_the_paths_below_v1(gateway: RunningGateway, path: str) -> None:
    with TestEngine("one") as engine:
        gateway.serve(model("llama", backend("llama-1", engine.port)))
        assert raw(gateway, "POST", path, {"model": "llama"}) in (400, 404)
    assert engine.requests == []


@pytest.mark.parametrize("prefix", ["", "/models/llama", "/v1/..", "/models/llama/v1/.."])
@pytest.mark.parametrize("path", CONTROLS)
def test_no_caller_reaches_what_controls_an_engine(
    gateway: RunningGateway, prefix: str, path: str
) -> None:
    with TestEngine("one") as engine:
        gateway.serve(model("llama", backend("llama-1", engine.port)))
        assert raw(gateway, "POST", f"{prefix}{path}", {"model": "llama"}) == 404
    assert engine.requests == []


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_a_key_allows_its_models_only_whatever_the_method(
    gateway: RunningGateway, method: str
) -> None:
    with TestEngine("one") as engine:
        llama = model("llama", backend("llama-1", engine.port))
        gateway.serve(llama, model("phi"), keys=(key("bob", "sk-b", models=("phi",)),))
        given = {"authorization": "Bearer sk-b"}
        ask = gateway.http.request
        answer = ask(method, "/v1/responses/resp_1", json={"model": "llama"}, headers=given)
        assert answer.status_code == 403
        answer = ask(method, "/models/phi/v1/responses/resp_1", json={"model": "llama"})
        assert answer.status_code == 421
    assert engine.requests == []


def test_a_request_without_a_model_is_told_so_whatever_the_method(gateway: RunningGateway) -> None:
    gateway.serve(model("llama"))
    assert gateway.http.get("/v1/elsewhere").json()["error"]["code"] == "unknown_path"
    assert gateway.http.delete("/v1/models").status_code == 200


@pytest.mark.parametrize("value", [7, 1.5, True, None, ["llama"], {"a": 1}])
def test_a_model_that_is_no_text_is_no_model(gateway: RunningGateway, value: object) -> None:
    gateway.serve(model("llama"))
    answer = gateway.http.post("/v1/completions", json={"model": value})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "missing_model")


def form(*parts: tuple[str, str], boundary: str = "b0undary") -> bytes:
    """A form as clients in other languages write it: parts of header lines and content."""
    lines = "".join(f"--{boundary}\r\n{head}\r\n\r\n{content}\r\n" for head, content in parts)
    return f"{lines}--{boundary}--\r\n".encode()


def field(name: str) -> str:
    return f'Content-Disposition: form-data; name="{name}"'


MODEL = (field("model"), "whisper")


@pytest.mark.parametrize(
    "parts",
    [
        ((field("model_version"), "2"), MODEL),
        ((f'{field("file")}; filename="model"', "sound"), MODEL),
        ((field("file"), f"{field('model')}\r\n\r\nother\r\n"), MODEL),
        ((f"{field('model')}\r\nContent-Type: text/plain\r\nContent-Length: 7", "whisper"),),
        ((f"Content-Type: text/plain\r\n{field('model')}", "whisper"),),
        (("content-disposition:form-data;name=model", "whisper"),),
    ],
    ids=["longer-name", "file-name", "inside-a-file", "more-headers", "last-header", "no-quotes"],
)
def test_the_model_is_the_form_field_of_that_name_and_no_other(
    gateway: RunningGateway, parts: tuple[tuple[str, str], ...]
) -> None:
    with TestEngine("ears") as engine:
        gateway.serve(model("whisper", backend("whisper-1", engine.port)), model("other"))
        kind = {"content-type": 'multipart/form-data; boundary="b0undary"'}
        body = form(*parts)
        answer = gateway.http.post("/v1/audio/transcriptions", content=body, headers=kind)
    assert answer.json() == {"by": "ears", "usage": {"prompt_tokens": 7, "completion_tokens": 5}}


def test_a_key_may_be_for_an_adapter_alone(gateway: RunningGateway) -> None:
    keys = (key("bob", "sk-b", models=("sql",)),)
    with TestEngine("one") as engine:
        gateway.serve(model("llama", backend("llama-1", engine.port), adapters=("sql",)), keys=keys)

        def status(name: str) -> int:
            return gateway.ask(name, headers={"authorization": "Bearer sk-b"}).status_code

        assert [status("sql"), status("llama")] == [200, 403]


def test_names_and_paths_of_any_length_leave_short_lines_in_the_log(
    gateway: RunningGateway,
) -> None:
    gateway.serve(model("llama"))
    long, kind = "A" * 2_000_000, {"content-type": "multipart/form-data; boundary=b0undary"}

    def own_lines() -> list[dict[str, Any]]:  # one of an earlier request may come late
        return [line for line in gateway.log() if long[:200] in str(line)]

    answers = [
        gateway.ask(long[:8_000]),  # Envoy itself takes a longer one for none
        gateway.http.post(
            "/v1/audio/transcriptions", content=form((field("model"), long)), headers=kind
        ),
        gateway.ask(long[:8_000], path="/elsewhere"),
        gateway.http.get(f"/v1/{long[:50_000]}"),
    ]
    assert [answer.status_code for answer in answers] == [404] * 4
    lines = until(lambda: found if len(found := own_lines()) == 4 else None)
    assert [line["model"] for line in lines[:3]] == ["A" * 256] * 3
    assert [len(line["path"]) for line in lines[2:]] == [10, 256]


@pytest.mark.parametrize(
    "body",
    [
        b"\r\n--b0undary" * 100_000 + b"\r\n\r\n",
        (b"--b0undary\r\n" + b"Content-Disposition:" * 200 + b"\r\n\r\n\r\n") * 1000,
        form(*[(field("other"), "x")] * 101, MODEL),
    ],
    ids=["boundaries", "heads", "parts"],
)
def test_a_form_of_any_shape_is_refused_at_once(gateway: RunningGateway, body: bytes) -> None:
    gateway.serve(model("whisper"))
    kind = {"content-type": "multipart/form-data; boundary=b0undary"}
    begun = time.monotonic()
    answer = gateway.http.post("/v1/audio/transcriptions", content=body, headers=kind)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "missing_model")
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"prompt_tokens": 7, "completion_tokens": 9}, (7, 9)),
        ({"input_tokens": 7, "output_tokens": 9, "total_tokens": 16}, (7, 9)),
        ({"prompt_tokens": 7, "total_tokens": 7}, (7, None)),
        ({"prompt_tokens": 9_000_000_000_000_000_000, "completion_tokens": 9}, (None, 9)),
    ],
    ids=["chat", "responses", "embeddings", "impossible"],
)
def test_tokens_are_counted_under_the_names_of_each_api(
    gateway: RunningGateway,
    usage: dict[str, int],
    counted: tuple[int | None, int | None],
    request: pytest.FixtureRequest,
) -> None:
    release = f"usage-{request.node.callspec.id}"
    with TestEngine("one", usage=usage) as engine:
        gateway.serve(model("llama", backend(release, engine.port)))
        answer: httpx.Response = gateway.ask("llama", path="/v1/responses")
    assert answer.status_code == 200
    line = until(lambda: next((one for one in gateway.log() if one["release"] == release), None))
    assert (line["prompt_tokens"], line["completion_tokens"]) == counted
