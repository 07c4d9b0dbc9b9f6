"""LoRA adapters on a real vLLM: from a hub with the model, and while it serves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import vllm_engine
from tests.e2e.workplace import Workplace
from tests.hub.server import Hub
from tests.openai_client import openai_client

pytestmark = [pytest.mark.vllm, pytest.mark.docker, pytest.mark.server]

MODEL, POET = "acme/tiny", "acme/poet"


@pytest.fixture
def hub(tiny_llama: Path, make_lora: Callable[..., Path]) -> Iterator[Hub]:
    """A hub with the model, and an adapter that has a tag and a branch that went on."""
    poet = _files(make_lora("first", "--seed", 1))
    with Hub({MODEL: _files(tiny_llama), POET: poet}) as hub:
        hub.push(POET, poet, branch="v1")
        hub.push(POET, {**poet, **_files(make_lora("second", "--seed", 2))})
        yield hub


def test_adapters_of_the_spec_and_adapters_that_come_and_go(
    workplace: Workplace, vllm_image: str, hub: Hub, make_lora: Callable[..., Path]
) -> None:
    workplace.environment |= {"MOORAGE_HUB_ENDPOINT": hub.url}
    spec = workplace.spec(
        source=f"hf://{MODEL}",
        engine=vllm_engine(vllm_image),
        placement={"accelerators": 0},
        context=1024,
        lora=[{"name": "poet", "source": f"hf://{POET}", "revision": "v1"}],
        lora_updates={"max": 2, "rank": 8},
    )
    name = workplace.named("tiny")
    release = workplace.json("deploy", spec)["release"]
    (poet,) = release["companions"]
    assert poet["revision"] == hub.branches[POET]["v1"] != hub.branches[POET]["main"]
    assert poet["rank"] == 8
    client = openai_client(release["workloads"][0]["endpoint"])

    def says(model: str) -> str:
        answer = client.completions.create(
            model=model, prompt="Every ship", max_tokens=12, temperature=0
        )
        return answer.choices[0].text

    base, first = says(name), says("poet")
    assert first != base

    loaded = workplace.json("lora", "load", name, f"later=hf://{POET}")
    assert loaded["outcome"] == "completed"
    assert loaded["adapter"]["revision"] == hub.branches[POET]["main"]
    assert says("later") not in (base, first)
    assert says(name) == base
    again = workplace.json("lora", "load", name, f"later=hf://{POET}")
    assert again["outcome"] == "unchanged"
    rows = {row["name"]: row for row in workplace.json("lora", "list", name)}
    assert {key: (row["from"], len(row["served_by"])) for key, row in rows.items()} == {
        "poet": ("spec", 1),
        "later": ("loaded", 1),
    }
    assert "Adapters loaded later" in workplace.run("show", name).stdout
    assert workplace.json("deploy", spec)["outcome"] == "unchanged"

    _refused_loads(workplace, name, make_lora)
    assert says("later") not in (base, first)

    workplace.run("lora", "unload", name, "later")
    from openai import NotFoundError  # noqa: PLC0415

    with pytest.raises(NotFoundError):
        says("later")
    assert says("poet") == first
    assert not list((workplace.home / "loaded" / name).iterdir())
    error = workplace.json("lora", "unload", name, "later", code=2)["error"]
    assert error["cause"] == "unknown-adapter"
    error = workplace.json("lora", "unload", name, "poet", code=2)["error"]
    assert error["cause"] == "adapters-fixed"

    workplace.run("retire", name)
    assert workplace.is_clean()


def _refused_loads(workplace: Workplace, name: str, make_lora: Callable[..., Path]) -> None:
    large = make_lora("large", "--rank", 16)
    error = workplace.json("lora", "load", name, f"large=file://{large}", code=6)["error"]
    assert error["cause"] == "adapter-refused"
    assert "LoRA rank 16 is greater than max_lora_rank 8" in error["detail"]
    assert "lora_updates.rank" in error["suggestion"]
    small = make_lora("small")
    for taken in (name, "poet", "later"):
        error = workplace.json("lora", "load", name, f"{taken}=file://{small}", code=2)["error"]
        assert error["cause"] == "adapter-name-taken"
    held = {row["name"] for row in workplace.json("lora", "list", name)}
    assert held == {"poet", "later"}


def _files(folder: Path) -> dict[str, Any]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
