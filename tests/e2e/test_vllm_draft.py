"""A model and its draft model from a hub, on a real vLLM."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import vllm_engine
from tests.e2e.workplace import Workplace
from tests.hub.server import Hub
from tests.openai_client import openai_client

pytestmark = [pytest.mark.vllm, pytest.mark.docker, pytest.mark.server]

DRAFT = "acme/small"


def test_a_model_is_served_with_a_draft_model_of_its_own_revision(
    workplace: Workplace, vllm_image: str, tiny_llama: Path
) -> None:
    files = {path.name: path.read_bytes() for path in tiny_llama.iterdir() if path.is_file()}
    with Hub({DRAFT: files}) as hub:
        hub.push(DRAFT, files, branch="v1")
        workplace.environment |= {"MOORAGE_HUB_ENDPOINT": hub.url}
        spec = workplace.spec(
            engine=vllm_engine(vllm_image),
            placement={"accelerators": 0},
            context=1024,
            speculative={
                "method": "draft_model",
                "tokens": 2,
                "model": f"hf://{DRAFT}",
                "revision": "v1",
            },
        )
        release = workplace.json("deploy", spec)["release"]
    (pin,) = release["companions"]
    assert (pin["role"], pin["revision"]) == ("draft", hub.branches[DRAFT]["v1"])
    endpoint = release["workloads"][0]["endpoint"]
    client = openai_client(endpoint)
    name = workplace.named("tiny")
    answer = client.completions.create(model=name, prompt="Every ship", max_tokens=8)
    assert answer.usage
    assert answer.usage.completion_tokens == 8
    counted = release["placement"]["seats"][0]["cpu_need"]["terms"]
    assert "draft" in {term["name"] for term in counted}

    workplace.run("retire", name)
    assert workplace.is_clean()
