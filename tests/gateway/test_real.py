"""A real Envoy with the configuration that is made here, in front of stand-in engines."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
import trustme

from moorage.gateway.clusters import engine_key
from moorage.gateway.gateway import GatewayOptions
from tests.gateway.conftest import RunningGateway
from tests.gateway.engine import TestEngine
from tests.gateway.tables import backend, key, model
from tests.waiting import until

pytestmark = pytest.mark.process


def test_each_model_is_answered_by_its_own_engine(gateway: RunningGateway) -> None:
    with TestEngine("one") as one, TestEngine("two") as two:
        gateway.serve(
            model("llama", backend("llama-1", one.port), adapters=("sql", "llama:poet")),
            model("phi", backend("phi-1", two.port)),
        )
        names = ("llama", "phi", "sql", "llama:poet")
        answers = [gateway.ask(name).json()["by"] for name in names]
    assert answers == ["one", "two", "one", "one"]


def test_the_listing_names_models_and_adapters(gateway: RunningGateway) -> None:
    gateway.serve(
        model("llama", backend("llama-1", 1), adapters=("sql",)),
        model("q"),
        model("z", held="asleep"),
        model("s", held="starting"),
    )
    listing = gateway.http.get("/v1/models").json()
    assert listing["object"] == "list"
    assert {one["id"]: one["state"] for one in listing["data"]} == {
        "llama": "running",
        "sql": "running",
        "q": "unavailable",
        "z": "asleep",
        "s": "starting",
    }
    assert gateway.http.get("/v1/models/sql").json()["parent"] == "llama"


@pytest.mark.parametrize(
    ("path", "body", "status", "code", "words"),
    [
        (
            "/v1/chat/completions",
            {"model": "lama"},
            404,
            "model_not_found",
            "Did you mean 'llama'?",
        ),
        ("/v1/chat/completions", {"model": "gpt-5"}, 404, "model_not_found", "does not exist."),
        ("/v1/chat/completions", {"x": 1}, 400, "missing_model", "no field 'model'"),
        ("/models/phi/v1/completions", {"model": "llama"}, 421, "misdirected_request", "'phi'"),
        ("/v1/embeddings", {"model": "nobody"}, 503, "model_unavailable", "Nobody serves"),
        ("/elsewhere", {"model": "llama"}, 404, "unknown_path", "nothing at this path"),
    ],
)
def test_a_request_that_nobody_answers_is_refused_in_the_shape_of_openai(
    gateway: RunningGateway, path: str, body: dict[str, object], status: int, code: str, words: str
) -> None:
    """D4 among them: an address of one model answers for no other (421)."""
    gateway.serve(
        model("llama", backend("llama-1", 1)), model("phi", backend("phi-1", 1)), model("nobody")
    )
    answer = gateway.http.post(path, json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (status, code)
    assert words in error["message"]


def test_the_model_may_come_last_in_a_large_body(gateway: RunningGateway) -> None:
    with TestEngine("one") as engine:
        gateway.serve(model("llama", backend("llama-1", engine.port)))
        body = json.dumps({"prompt": "x" * 4_000_000, "model": "llama"})
        kind = {"content-type": "application/json"}
        answer = gateway.http.post("/v1/completions", content=body, headers=kind)
    assert answer.json()["by"] == "one"
    assert len(engine.requests[0][2]) == len(body)


@pytest.mark.parametrize(
    "kind",
    [
        "application/json; charset=utf-8",
        "Application/JSON;charset=UTF-8",
        "application/vnd.api+json ; version=1",
    ],
)
def test_the_content_type_of_json_may_have_parameters(gateway: RunningGateway, kind: str) -> None:
    with TestEngine("one") as engine:
        gateway.serve(model("llama", backend("llama-1", engine.port)))
        assert gateway.ask("llama", headers={"content-type": kind}).json()["by"] == "one"


def test_the_model_may_be_a_field_of_a_form(gateway: RunningGateway) -> None:
    with TestEngine("ears") as engine:
        gateway.serve(model("whisper", backend("whisper-1", engine.port)))
        sound = {"file": ("a.wav", b"\0" * 100_000)}
        answer = gateway.http.post(
            "/v1/audio/transcriptions", data={"model": "whisper"}, files=sound
        )
    assert answer.json()["by"] == "ears"


def test_a_stream_comes_as_it_is_made_and_survives_the_switch(gateway: RunningGateway) -> None:
    events: list[str] = []
    with TestEngine("old", tokens=20, pause=0.05) as old, TestEngine("new") as new:
        gateway.serve(model("llama", backend("llama-1", old.port)))
        begun = threading.Event()

        def stream() -> None:
            body = {"model": "llama", "stream": True}
            with gateway.http.stream("POST", "/v1/chat/completions", json=body) as answer:
                for line in answer.iter_lines():
                    if line:
                        events.append(line)
                        begun.set()

        reader = threading.Thread(target=stream)
        reader.start()
        assert begun.wait(10)
        assert len(events) < 20
        gateway.serve(model("llama", backend("llama-2", new.port)))
        assert gateway.ask("llama").json()["by"] == "new"
        reader.join(20)
    assert len(events) == 22
    assert events[-1] == "data: [DONE]"


def test_who_has_no_key_is_refused_and_a_revoked_one_no_longer_serves(
    gateway: RunningGateway,
) -> None:
    ended = datetime.now(UTC) - timedelta(seconds=1)
    keys = (
        key("ann", "sk-a"),
        key("bob", "sk-b", models=("phi",)),
        key("old", "sk-o", expires=ended),
    )
    with TestEngine("one") as engine:
        models = (model("llama", backend("llama-1", engine.port)),)
        gateway.serve(*models, keys=keys, requires_key=True)

        def status(text: str) -> int:
            given = {"authorization": f"Bearer {text}"} if text else {}
            return gateway.ask("llama", headers=given).status_code

        given = ("", "sk-a", "sk-b", "sk-o", "sk-x")
        assert [status(text) for text in given] == [401, 200, 403, 401, 401]
        assert "authorization" not in engine.requests[0][1]
        gateway.serve(*models, keys=keys[1:], requires_key=True)
        assert status("sk-a") == 401


def test_of_a_thousand_keys_each_is_known_and_only_the_revoked_one_is_refused(
    gateway: RunningGateway,
) -> None:
    texts = [f"sk-{number}" for number in range(1000)]
    keys = tuple(key(f"caller-{text}", text, rate="100/min") for text in texts)
    with TestEngine("one") as engine:
        models = (model("llama", backend("llama-1", engine.port)),)

        def statuses() -> Counter[int]:
            given = [{"authorization": f"Bearer {text}"} for text in texts]
            return Counter(gateway.ask("llama", headers=one).status_code for one in given)

        gateway.serve(*models, keys=keys, requires_key=True)
        assert statuses() == {200: 1000}
        gateway.serve(*models, keys=keys[1:], requires_key=True)
        assert gateway.ask("llama", headers={"authorization": "Bearer sk-0"}).status_code == 401
        assert statuses() == {200: 999, 401: 1}


def test_a_replica_that_is_gone_costs_no_request(gateway: RunningGateway) -> None:
    with TestEngine("stays") as engine:
        with TestEngine("goes") as other:
            lost = other.port
            gateway.serve(model("llama", backend("llama-1", engine.port, lost)))
            assert {gateway.ask("llama").json()["by"] for _ in range(20)} == {"stays", "goes"}
        answers = [gateway.ask("llama") for _ in range(20)]
    assert [answer.json()["by"] for answer in answers] == ["stays"] * 20


def test_a_canary_gets_its_share_of_requests(gateway: RunningGateway) -> None:
    with TestEngine("old") as old, TestEngine("new") as new:
        backends = backend("llama-1", old.port, weight=80), backend("llama-2", new.port, weight=20)
        gateway.serve(model("llama", *backends))
        answers = [gateway.ask("llama").json()["by"] for _ in range(400)]
    assert 40 <= answers.count("new") <= 120


def test_a_canary_that_is_gone_costs_no_request(gateway: RunningGateway, tmp_path: Path) -> None:
    file = tmp_path / "key.json"
    file.write_text(json.dumps(engine_key("sk-engine")))
    with TestEngine("old") as old:
        with TestEngine("new") as new:
            canary = backend("llama-2", new.port, weight=50, key_file=str(file))
            gateway.serve(
                model(
                    "llama",
                    backend("llama-1", old.port, weight=50, key_file=str(file)),
                    canary.model_copy(update={"stand_in": "llama-1"}),
                )
            )
            assert {gateway.ask("llama").json()["by"] for _ in range(30)} == {"old", "new"}
        answers = [gateway.ask("llama") for _ in range(50)]
    assert [answer.json()["by"] for answer in answers] == ["old"] * 50
    keys = {headers["authorization"] for _, headers, _ in (*old.requests, *new.requests)}
    assert keys == {"bearer sk-engine"}


def test_a_caller_whose_tokens_of_the_day_are_used_up_is_told_when_to_come_back(
    gateway: RunningGateway,
) -> None:
    keys = key("ann", "sk-a", tokens="1k/day"), key("bob", "sk-b", tokens="1k/day")
    ends = datetime.now(UTC) + timedelta(minutes=10)
    with TestEngine("one") as engine:
        models = (model("llama", backend("llama-1", engine.port)),)
        gateway.serve(*models, keys=keys, spent=("ann",), day_ends=ends)
        refused, served = (
            gateway.ask("llama", headers={"authorization": f"Bearer sk-{name}"}) for name in "ab"
        )
        assert (refused.status_code, served.status_code) == (429, 200)
        assert refused.json()["error"]["code"] == "token_limit"
        assert 590 <= int(refused.headers["retry-after"]) <= 600
        gateway.serve(*models, keys=keys, spent=("ann",), day_ends=datetime.now(UTC))
        again = gateway.ask("llama", headers={"authorization": "Bearer sk-a"})
    assert again.status_code == 200


def test_an_answer_may_take_as_long_as_the_spec_of_its_model_says(gateway: RunningGateway) -> None:
    with TestEngine("slow", tokens=40, pause=0.1) as engine:
        gateway.serve(model("llama", backend("llama-1", engine.port), timeout_seconds=1))
        body = {"model": "llama", "stream": True}
        lines: list[str] = []
        with (
            gateway.http.stream("POST", "/v1/completions", json=body) as answer,
            pytest.raises(httpx.RemoteProtocolError),
        ):
            lines.extend(answer.iter_lines())
    assert 0 < len(list(filter(None, lines))) < 20
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        gateway.serve(model("llama", backend("llama-1", port), timeout_seconds=1))
        refused = gateway.ask("llama")
    assert (refused.status_code, refused.json()["error"]["type"]) == (504, "server_error")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_the_log_has_the_tokens_and_the_caller_of_a_request_and_none_of_its_text(
    gateway: RunningGateway, stream: bool
) -> None:
    release = f"counted-{stream}"
    with TestEngine("one", tokens=9) as engine:
        gateway.serve(model("llama", backend(release, engine.port)), keys=(key("ann", "sk-ann"),))
        given = {"authorization": "Bearer sk-ann"}
        answer = gateway.ask("llama", headers=given, stream=stream, prompt="a secret")
    assert answer.status_code == 200
    line = until(lambda: next((one for one in gateway.log() if one["release"] == release), None))
    assert (line["prompt_tokens"], line["completion_tokens"]) == (7, 9)
    assert (line["caller"], line["model"], line["status"]) == ("ann", "llama", 200)
    assert "secret" not in json.dumps(line)


NOTHING_USED = {"usage": {"input_tokens": 0, "output_tokens": 0}}


@pytest.mark.parametrize(
    "echo",
    [
        None,
        {"response": {"tools": [{"parameters": NOTHING_USED}], "usage": None}},
        {"type": "message_start", "message": NOTHING_USED},
    ],
    ids=["chat", "tools-repeated", "messages"],
)
def test_of_a_caller_that_leaves_a_stream_its_events_are_counted(
    gateway: RunningGateway, echo: object, request: pytest.FixtureRequest
) -> None:
    release = f"left-{request.node.callspec.id}"
    with TestEngine("one", tokens=100, pause=0.02, echo=echo) as engine:
        gateway.serve(model("llama", backend(release, engine.port)))
        body = {"model": "llama", "stream": True}
        with gateway.http.stream("POST", "/v1/chat/completions", json=body) as answer:
            read = [line for line, _ in zip(answer.iter_lines(), range(40), strict=False)]
    line = until(lambda: next((one for one in gateway.log() if one["release"] == release), None))
    assert len(read) == 40
    assert 20 <= line["completion_tokens"] < 100


def test_with_a_certificate_it_speaks_https_and_http_2_and_renews_it(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate, key = tmp_path / "a.crt", tmp_path / "a.key"

    def issue() -> bytes:
        own = authority.issue_cert("127.0.0.1")
        own.private_key_pem.write_to_path(str(key))
        certificate.write_bytes(b"".join(part.bytes() for part in own.cert_chain_pems))
        return ssl.PEM_cert_to_DER_cert(own.cert_chain_pems[0].bytes().decode())

    def shake_hands() -> tuple[str | None, bytes | None]:
        with (
            socket.create_connection(("127.0.0.1", gateway.port)) as plain,
            trusted.wrap_socket(plain, server_hostname="127.0.0.1") as secure,
        ):
            return secure.selected_alpn_protocol(), secure.getpeercert(binary_form=True)

    first = issue()
    files = {"tls_certificate": str(certificate), "tls_key": str(key)}
    gateway = RunningGateway(tmp_path / "gateway", None, **files)
    try:
        trusted = ssl.create_default_context()
        authority.configure_trust(trusted)
        trusted.set_alpn_protocols(["h2", "http/1.1"])
        assert shake_hands() == ("h2", first)
        answer = httpx.get(f"https://127.0.0.1:{gateway.port}/health", verify=trusted)
        assert answer.json() == {"status": "ok"}
        second = issue()
        options = GatewayOptions.model_validate({"port": gateway.port, **files})
        gateway.files.renew_certificate(options, gateway.admin)
        until(lambda: shake_hands()[1] == second)
    finally:
        gateway.close()


def test_a_caller_may_make_as_many_requests_as_its_key_allows(gateway: RunningGateway) -> None:
    with TestEngine("one") as engine:
        models = (model("llama", backend("llama-1", engine.port)),)
        keys = key("slow", "sk-slow", rate="3/h"), key("fast", "sk-fast")
        gateway.serve(*models, keys=keys)

        def ask(text: str) -> httpx.Response:
            return gateway.ask("llama", headers={"authorization": f"Bearer {text}"})

        answers = [ask("sk-slow") for _ in range(5)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
        assert answers[-1].headers["x-ratelimit-remaining"] == "0"
        assert "error" in answers[-1].json()
        assert {ask("sk-fast").status_code for _ in range(10)} == {200}


@pytest.mark.parametrize("path", ["/tokenize", "/pooling", "/v2/rerank", "/models/llama/score"])
def test_paths_of_an_engine_go_to_the_model_that_the_request_names(
    gateway: RunningGateway, path: str
) -> None:
    with TestEngine("one") as engine:
        gateway.serve(model("llama", backend("llama-1", engine.port)), model("phi"))
        assert gateway.http.post(path, json={"model": "llama"}).status_code == 200
        assert gateway.http.post(path, json={}).status_code == 400
        assert gateway.http.post(path, json={"model": "nobody"}).status_code == 404
        assert gateway.http.post("/models/phi/score", json={"model": "llama"}).status_code == 421
    assert [sent for sent, _, _ in engine.requests] == [path.removeprefix("/models/llama")]


def test_they_ask_for_a_key_as_others_do(gateway: RunningGateway) -> None:
    with TestEngine("one") as engine:
        llama = model("llama", backend("llama-1", engine.port))
        gateway.serve(llama, model("phi"), keys=(key("bob", "sk-b", models=("phi",)),))
        given = {"authorization": "Bearer sk-b"}
        answer = gateway.http.post("/tokenize", json={"model": "llama"}, headers=given)
        assert answer.status_code == 403
    assert engine.requests == []


def test_one_that_ends_takes_no_new_connection_while_its_streams_go_on(tmp_path: Path) -> None:
    running = RunningGateway(tmp_path)
    try:
        with TestEngine("one", tokens=20, pause=0.1) as engine:
            running.serve(model("llama", backend("llama-1", engine.port)))
            kept = httpx.Client(base_url=f"http://127.0.0.1:{running.port}")
            assert "connection" not in kept.get("/v1/models").headers
            asked = running.http.stream(
                "POST", "/v1/chat/completions", json={"model": "llama", "stream": True}
            )
            with asked as answer:
                lines = answer.iter_lines()
                next(lines)
                running.admin.stop_listening()
                with pytest.raises(httpx.NetworkError):
                    httpx.get(f"http://127.0.0.1:{running.port}/v1/models")
                assert kept.get("/v1/models").headers["connection"] == "close"
                assert "data: [DONE]" in lines
            until(lambda: running.admin.open_requests() == 0)
    finally:
        running.close()
