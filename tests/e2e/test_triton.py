"""A model on a real tritonserver: deployed, asked over HTTP and gRPC, replaced, killed, retired.

The backend keeps the contract of NVIDIA's for vLLM (`tests/triton/model.py`). E1 to E10 are rows of
its behaviours.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.workplace import REPOSITORY, Workplace
from tests.triton.client import TritonStream, switch, text
from tests.waiting import until

pytestmark = [pytest.mark.docker, pytest.mark.server]

PROMPT = "Every ship finds"


OUTPUTS = {
    *("text_output", "finish_reason", "cumulative_logprob", "logprobs"),
    *("num_input_tokens", "num_output_tokens"),
}
INPUTS = {
    *("text_input", "image", "stream", "sampling_parameters", "exclude_input_in_output"),
    *(f"return_{name}" for name in OUTPUTS - {"text_output"}),
    "embedding_request",
}
"""Of the backend's contract (row E2)."""


def engine(image: str, **triton: Any) -> dict[str, Any]:
    return {
        **{"name": "triton", "image": image, "version": "26.07", "shm": "256MiB"},
        "triton": triton,
    }


def on_cpu(image: str, **triton: Any) -> dict[str, Any]:
    return {
        "engine": engine(image, **triton),
        "placement": {"accelerators": 0, "ram": "600MiB"},
        "stopping": {"grace_seconds": 5},
    }


def test_a_model_is_served_replaced_rolled_back_and_retired(
    workplace: Workplace, triton_image: str
) -> None:
    """E1: the real server loads the repository that moorage writes."""
    spec = workplace.spec(**on_cpu(triton_image))
    planned = workplace.json("plan", spec)
    first = workplace.json("deploy", spec)["release"]
    assert first["plan"] == planned["plan"]
    phases = [one["phase"] for one in first["readiness"][0]["probes"]]
    assert phases == ["listening", "healthy", "listed", "answered"]
    text = generate(workplace, first)["text_output"]
    assert text.startswith(PROMPT)  # E5: not streamed, the prompt comes first

    fields = on_cpu(triton_image)
    fields["engine"]["args"] = ["--max-model-len 128"]
    second = workplace.json("deploy", workplace.spec(**fields))["release"]
    assert second["replaced"] == first["id"]
    assert arguments_of(second)["max_model_len"] == 128
    back = workplace.json("rollback", workplace.named("tiny"))["release"]
    assert arguments_of(back) == arguments_of(first)
    assert generate(workplace, back)["text_output"] == text
    chatted = workplace.run("chat", workplace.named("tiny"), PROMPT, "--max-tokens", 8).stdout
    assert chatted == f"{text.removeprefix(PROMPT)}\n"
    shown = workplace.run("status").stdout
    assert f"{back['workloads'][0]['endpoint']}/v2" in shown
    workplace.run("retire", workplace.named("tiny"))
    assert workplace.is_clean()


def test_requests_over_http_and_grpc(workplace: Workplace, triton_image: str) -> None:
    """E2, E5, E6, E8 and E10: outputs, prompts, cancelling, metrics and errors."""
    spec = workplace.spec(**on_cpu(triton_image, grpc=True))
    deployed = workplace.json("deploy", spec)["release"]
    # E5: without the prompt where it is excluded, and never in a stream.
    alone = generate(workplace, deployed, exclude_input_in_output=True)["text_output"]
    assert generate(workplace, deployed)["text_output"] == f"{PROMPT}{alone}"
    error = generate(workplace, deployed, stream=True, exclude_input_in_output=False, code=400)
    assert "`exclude_input_in_output` = False is not allowed" in error["error"]
    # E2: the backend has completed the inputs and outputs, and only what was asked for is answered.
    base = f"{deployed['workloads'][0]['endpoint']}/v2/models/{workplace.named('tiny')}"
    config = httpx.get(f"{base}/config").json()
    assert config["model_transaction_policy"] == {"decoupled": True}
    assert config["max_batch_size"] == 0
    assert {one["name"] for one in config["input"]} == INPUTS
    assert {one["name"] for one in config["output"]} == OUTPUTS
    found = generate(workplace, deployed, return_finish_reason=True, return_num_output_tokens=True)
    assert (found["finish_reason"], found["num_output_tokens"]) == ("length", 8)
    assert not {"logprobs", "cumulative_logprob", "num_input_tokens"} & {*found}
    further: dict[str, Any] = {f"return_{name}": True for name in OUTPUTS - {"text_output"}}
    found = generate(workplace, deployed, **further)
    assert {*found} >= OUTPUTS
    assert json.loads(found["logprobs"]) is None  # for no sampling parameter asked for any
    assert found["num_input_tokens"] == len(PROMPT.split())
    # Sampling parameters may be the request's own, too.
    asked = {"text_input": PROMPT, "temperature": 0, "max_tokens": 8}
    assert httpx.post(f"{base}/generate", json=asked).json()["text_output"] == f"{PROMPT}{alone}"
    # E10: an error while generating is an error to the client.
    bad = generate(workplace, deployed, sampling_parameters='{"guided_json": "{}"}', code=400)
    assert "'NoneType' object has no attribute 'lora_name'" in bad["error"]

    deltas = list(iter_stream(workplace, deployed, 6))
    assert len(deltas) == 6
    assert "".join(deltas) == alone[: len("".join(deltas))]
    stream = TritonStream(grpc_of(deployed), workplace.named("tiny"), inputs(2_000))
    assert next(iter(stream))
    stream.cancel()  # E6
    log = ("logs", workplace.named("tiny"))
    until(lambda: "Successfully cancelled the request" in workplace.run(*log).stdout)
    # E8: metrics tell model and version.
    named = f'model="{workplace.named("tiny")}",version="1"'
    metrics = httpx.get(f"http://{address_of(deployed, 'metrics')}/metrics").text
    assert f"vllm:generation_tokens_total{{{named}}}" in metrics


def test_nobody_who_asks_the_model_can_change_the_server(
    workplace: Workplace, triton_image: str
) -> None:
    release = workplace.json("deploy", workplace.spec(**on_cpu(triton_image)))["release"]
    base = release["workloads"][0]["endpoint"]
    opens = [b"", b"x", b"x\ny", b"x\r\n y", b"x\r\n\ty", b"x\\ny"]
    for path in ("repository/index", "repository/models/x/load", "logging"):
        for value in opens:
            assert status_of(base, path, value) != 200, (path, value)
    assert "grpc" not in release["plan"]["containers"][0]["services"]


def test_adapters_are_named_by_requests(
    workplace: Workplace, triton_image: str, tmp_path: Path
) -> None:
    """E4, and E1 for the file of adapters."""
    script = REPOSITORY / "scripts" / "make_tiny_lora.py"
    subprocess.run([sys.executable, script, tmp_path / "poet"], check=True, capture_output=True)
    lora = [{"name": "poet", "source": f"file://{tmp_path / 'poet'}"}]
    spec = workplace.spec(**on_cpu(triton_image), lora=lora)
    release = workplace.json("deploy", spec)["release"]
    plain = generate(workplace, release)["text_output"]
    assert generate(workplace, release, lora="poet")["text_output"] != plain
    # E4: told before anything is generated.
    error = generate(workplace, release, lora="nobody", code=400)["error"]
    assert "LoRA nobody is not supported, we currently support ['poet']" in error
    workplace.run("deploy", workplace.spec(**on_cpu(triton_image)))
    (row, *_) = workplace.releases()
    assert row.release
    now = row.release.model_dump(mode="json")
    assert (
        "LoRA feature is not enabled." in generate(workplace, now, lora="poet", code=400)["error"]
    )


def test_what_the_version_does_not_take_is_refused_before_it_starts(
    workplace: Workplace, triton_image: str
) -> None:
    """E1 for wrong arguments, and E3 for instances."""

    def refusal(*arguments: str, **triton: Any) -> str:
        fields = on_cpu(triton_image, **triton)
        fields["engine"]["args"] = list(arguments)
        error = workplace.json("plan", workplace.spec(**fields), code=2)["error"]
        return f"{error['detail']} {error['suggestion']}"

    assert "--invalid-attribute" in refusal("--invalid-attribute 1")
    assert "Did you mean `--max-model-len`?" in refusal("--max-model-lem 12")
    assert "Triton has another one" in refusal("--chat-template x")
    assert "KIND_GPU is for one" in refusal(instance="KIND_GPU")
    assert "over gRPC by everybody" in refusal(grpc=True, health_check=True)


@pytest.mark.parametrize(
    ("triton", "cause", "reason"),
    [
        ({"server_args": ["--no-such-option=1"]}, "engine-bad-argument", "--no-such-option"),
        ({"openai": True}, "program-missing", "The image has no OpenAI frontend"),
    ],
)
def test_a_model_that_cannot_be_loaded_fails_with_the_reason(
    workplace: Workplace, triton_image: str, triton: dict[str, Any], cause: str, reason: str
) -> None:
    fields = on_cpu(triton_image)
    fields["engine"]["triton"] = triton
    error = workplace.json("deploy", workplace.spec(**fields), code=None)["error"]
    assert error["cause"] == cause, error
    assert reason in f"{error['detail']} {error['suggestion']}"
    assert workplace.is_clean()


def test_a_dead_engine_behind_a_ready_server_is_found_and_replaced(
    workplace: Workplace, triton_image: str
) -> None:
    """E7 as it is by default: nobody is told."""
    spec = workplace.spec(**on_cpu(triton_image))
    release = workplace.json("deploy", spec)["release"]
    assert "EngineCore" in generate(workplace, release, prompt="die", code=400)["error"]
    base = release["workloads"][0]["endpoint"]
    ready = httpx.get(f"{base}/v2/models/{workplace.named('tiny')}/ready")
    assert ready.status_code == 200  # nothing says that it is dead
    workplace.run("deploy", spec)
    (row, *_) = workplace.releases()
    assert row.id != release["id"]
    assert row.release
    assert generate(workplace, row.release.model_dump(mode="json"))["text_output"]


def test_the_backends_own_health_check_unloads_a_dead_model(
    workplace: Workplace, triton_image: str
) -> None:
    """E7 where the spec asks for it."""
    spec = workplace.spec(**on_cpu(triton_image, health_check=True))
    release = workplace.json("deploy", spec)["release"]
    generate(workplace, release, prompt="die", code=400)
    error = generate(workplace, release, code=None)["error"]
    assert "Model is unavailable due to unhealthy vLLM engine" in error
    base = f"{release['workloads'][0]['endpoint']}/v2/models/{workplace.named('tiny')}"
    until(lambda: httpx.get(f"{base}/ready").status_code == 400)


def test_requests_in_flight_end_before_the_server(workplace: Workplace, triton_image: str) -> None:
    """E9."""
    release = workplace.json("deploy", workplace.spec(**on_cpu(triton_image)))["release"]
    answers: list[dict[str, Any]] = []
    sampling = json.dumps({"max_tokens": 150})
    asking = threading.Thread(
        target=lambda: answers.append(generate(workplace, release, sampling_parameters=sampling))
    )
    asking.start()
    time.sleep(0.5)
    workplace.run("retire", workplace.named("tiny"))
    asking.join()
    assert len(answers[0]["text_output"].split()) == 150 + len(PROMPT.split())
    assert workplace.is_clean()


def status_of(base: str, path: str, value: bytes) -> int:
    """Of a request with that value in the header, which clients would not send; 0 = no answer."""
    where = httpx.URL(base)
    with socket.create_connection((where.host, where.port), timeout=10) as connection:
        line = f"POST /v2/{path} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n".encode()
        connection.sendall(line + b"moorage-closed: " + value + b"\r\n\r\n{}")
        words = connection.recv(100).split(maxsplit=2)
    return int(words[1]) if len(words) > 1 else 0


def generate(
    workplace: Workplace,
    release: dict[str, Any],
    prompt: str = PROMPT,
    code: int | None = 200,
    lora: str = "",
    **fields: Any,
) -> dict[str, Any]:
    sampling = {"temperature": 0, "max_tokens": 8} | ({"lora_name": lora} if lora else {})
    body = {"text_input": prompt, "stream": False, "sampling_parameters": json.dumps(sampling)}
    base = release["workloads"][0]["endpoint"]
    url = f"{base}/v2/models/{workplace.named('tiny')}/generate"
    answer = httpx.post(url, json={**body, **fields}, timeout=60)
    assert code in (None, answer.status_code), answer.text
    found: dict[str, Any] = answer.json()
    return found


def iter_stream(workplace: Workplace, release: dict[str, Any], tokens: int) -> Any:
    stream = TritonStream(grpc_of(release), workplace.named("tiny"), inputs(tokens))
    stream.end()
    return stream


def inputs(tokens: int) -> dict[str, tuple[str, bytes]]:
    sampling = json.dumps({"temperature": 0, "max_tokens": tokens})
    return {
        "text_input": text(PROMPT),
        "stream": switch(True),
        "sampling_parameters": text(sampling),
    }


def address_of(release: dict[str, Any], service: str) -> str:
    (container,) = release["plan"]["containers"]
    return f"{container['bind']}:{container['services'][service]}"


def grpc_of(release: dict[str, Any]) -> str:
    return address_of(release, "grpc")


def arguments_of(release: dict[str, Any]) -> dict[str, Any]:
    (container,) = release["plan"]["containers"]
    (file,) = [one for one in container["files"] if one["path"].endswith("model.json")]
    found: dict[str, Any] = json.loads(file["content"])
    return found
