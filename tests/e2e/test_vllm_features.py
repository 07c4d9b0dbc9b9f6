"""What vLLM does apart from chats, on real starts on CPU that answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import tiny_model, vllm_engine
from tests.e2e.workplace import Workplace
from tests.prefect_server import PrefectServer

pytestmark = [pytest.mark.vllm, pytest.mark.docker, pytest.mark.server]

TIDE = {
    "type": "function",
    "function": {
        "name": "tide",
        "description": "The height of the tide at a berth",
        "parameters": {"type": "object", "properties": {"berth": {"type": "string"}}},
    },
}

LONG, AT_ONCE = 300, 8
"""Tokens of an answer and answers to a request: together longer than the start of a command."""


class Served:
    """A model that was deployed: its release, and requests to it."""

    def __init__(self, workplace: Workplace, image: str, *args: str, **fields: Any) -> None:
        spec = workplace.spec(
            engine=vllm_engine(image, *args), placement={"accelerators": 0}, **fields
        )
        self.workplace, self.name = workplace, workplace.named("tiny")
        self.release = workplace.json("deploy", spec)["release"]
        self._endpoint = self.release["workloads"][0]["endpoint"]

    @property
    def proof(self) -> dict[str, Any]:
        """The last probe of the readiness protocol."""
        last: dict[str, Any] = self.release["readiness"][0]["probes"][-1]
        return last

    def post(self, path: str, **body: Any) -> Any:
        """The answer to a request, which must be 200."""
        request = {"model": self.name, **body}
        answer = httpx.post(f"{self._endpoint}{path}", json=request, timeout=240)
        return answer.raise_for_status().json()

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        text = httpx.get(f"{self._endpoint}/metrics", timeout=30).text
        return sum(map(float, re.findall(rf"^{re.escape(name)}(?:{{.*}})? (\S+)$", text, re.M)))


def test_embeddings(workplace: Workplace, vllm_image: str, tmp_path: Path) -> None:
    model = tiny_model(tmp_path, "bert")
    served = Served(workplace, vllm_image, source=f"file://{model}", context=512)

    assert served.release["profile"]["mode"] == "embedding"
    assert served.proof["detail"] == "a vector of 64"
    near, far = (
        entry["embedding"] for entry in served.post("/v1/embeddings", input=["a", "b"])["data"]
    )
    assert near != far


def test_embeddings_of_a_model_that_was_made_to_write(
    workplace: Workplace, vllm_image: str
) -> None:
    served = Served(workplace, vllm_image, context=512, mode="embedding")
    assert served.proof["detail"] == "a vector of 64"


def test_scores(workplace: Workplace, vllm_image: str, tmp_path: Path) -> None:
    model = tiny_model(tmp_path, "reranker")
    served = Served(workplace, vllm_image, source=f"file://{model}", context=512)

    assert served.release["profile"]["mode"] == "reranking"
    assert served.proof["detail"] == "2 scores"
    ranked = served.post("/rerank", query="ship", documents=["the ship", "a berth", "wool"])
    scores = [entry["relevance_score"] for entry in ranked["results"]]
    assert scores == sorted(scores, reverse=True)
    scored = served.post("/score", queries="ship", documents=["the ship", "a berth"])
    assert len(scored["data"]) == 2


def test_labels(workplace: Workplace, vllm_image: str, tmp_path: Path) -> None:
    model = tiny_model(tmp_path, "classifier")
    served = Served(workplace, vllm_image, source=f"file://{model}", context=512)

    assert served.release["profile"]["mode"] == "classification"
    (found,) = served.post("/classify", input=["the ship"])["data"]
    assert len(found["probs"]) == 3


@pytest.fixture(scope="module")
def writer(
    tmp_path_factory: pytest.TempPathFactory,
    tiny_llama: Path,
    vllm_image: str,
    prefect_server: PrefectServer,
) -> Iterator[Served]:
    """It may call tools, looks drafts up, and waits for its requests; its last test retires it."""
    place = Workplace(tmp_path_factory.mktemp("writer"), tiny_llama, prefect_server.environment)
    flags = ("--enable-auto-tool-choice", "--tool-call-parser hermes")
    lookup = {"method": "ngram", "tokens": 3, "ngram_min": 1, "ngram_max": 3}
    stopping = {"drain_seconds": 240, "grace_seconds": 240}
    yield Served(place, vllm_image, *flags, context=2048, speculative=lookup, stopping=stopping)
    place.close()


def test_tools_may_be_called(writer: Served) -> None:
    answer = writer.post(
        "/v1/chat/completions",
        messages=[{"role": "user", "content": "How high is the tide?"}],
        tools=[TIDE],
        max_tokens=8,
    )
    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "length"
    assert choice["message"]["content"]


def test_drafts_are_looked_up_in_the_prompt(writer: Served) -> None:
    answer = writer.post("/v1/completions", prompt="hello " * 60, max_tokens=60, temperature=0)
    assert answer["usage"]["completion_tokens"] == 60
    drafted = writer.metric("vllm:spec_decode_num_draft_tokens_total")
    accepted = writer.metric("vllm:spec_decode_num_accepted_tokens_total")
    assert 0 <= accepted <= drafted
    assert drafted > 0


def test_a_retire_waits_for_requests_in_flight(writer: Served) -> None:
    cause = retired_while_busy(writer)
    # A metrics page that is slow to answer may only tell of an engine that is idle again.
    waited = r"retired; (its last request ended after .*|no request was in flight)"
    assert re.fullmatch(waited, cause), cause


def test_requests_in_flight_survive_a_retire_that_does_not_wait(
    workplace: Workplace, vllm_image: str
) -> None:
    """By vLLM's own time-out."""
    stopping = {"drain_seconds": 0, "grace_seconds": 240}
    served = Served(workplace, vllm_image, context=2048, stopping=stopping)
    assert retired_while_busy(served) == "retired"


def retired_while_busy(served: Served) -> str:
    """Why the release has stopped; every request in flight was answered whole."""

    def ask() -> Any:
        body = {"prompt": "hello", "max_tokens": LONG, "n": AT_ONCE, "ignore_eos": True}
        return served.post("/v1/completions", **body)

    with ThreadPoolExecutor() as pool:
        clients: list[Future[Any]] = []

        def busy() -> bool:
            # A slow page may have been sent only after the last answer: then they ask again.
            if all(client.done() for client in clients):
                clients.extend(pool.submit(ask) for _ in range(3))
            return served.metric("vllm:num_requests_running") >= AT_ONCE

        served.workplace.wait_until(busy)
        served.workplace.run("retire", served.name)
        answers = [client.result(timeout=30) for client in clients]

    assert {answer["usage"]["completion_tokens"] for answer in answers} == {LONG * AT_ONCE}
    ends = {choice["finish_reason"] for answer in answers for choice in answer["choices"]}
    assert ends == {"length"}
    (row,) = served.workplace.releases()
    assert row.state == "stopped"
    assert served.workplace.is_clean()
    return row.cause
