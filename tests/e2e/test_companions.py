"""Adapters and draft models of a hub: pinned with the model, compared with what serves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import process_engine
from tests.e2e.workplace import Workplace
from tests.hub.server import Hub
from tests.hub.tiny import safetensors

pytestmark = [pytest.mark.process, pytest.mark.server]

MODEL, POET = "acme/tiny", "acme/poet"
LORA = [{"name": "poet", "source": f"hf://{POET}"}]


def adapter(**changes: Any) -> dict[str, bytes]:
    """An adapter that no engine has to load."""
    config = {"peft_type": "LORA", "r": 4, "base_model_name_or_path": MODEL, **changes}
    return {
        "adapter_config.json": json.dumps(config).encode(),
        "adapter_model.safetensors": safetensors({"a": ("F32", [4, 64])}),
    }


@pytest.fixture
def hub(tiny_llama: Path) -> Iterator[Hub]:
    files = {path.name: path.read_bytes() for path in tiny_llama.iterdir() if path.is_file()}
    with Hub({MODEL: files, POET: adapter()}) as hub:
        yield hub


@pytest.fixture
def hub_workplace(workplace: Workplace, hub: Hub) -> Workplace:
    workplace.environment |= {"MOORAGE_HUB_ENDPOINT": hub.url}
    return workplace


def test_the_branch_of_an_adapter_that_moved_is_a_new_release(
    hub_workplace: Workplace, hub: Hub, lifecycle_program: Path
) -> None:
    spec = hub_workplace.spec(
        source=f"hf://{MODEL}", engine=process_engine(lifecycle_program), lora=LORA
    )
    first = hub_workplace.json("deploy", spec)["release"]
    (pin,) = first["companions"]
    assert (pin["name"], pin["revision"], pin["rank"]) == ("poet", hub.branches[POET]["main"], 4)
    steps = [step["name"] for step in first["steps"]]
    assert {"resolve", "resolve poet", "stage", "stage poet"} <= set(steps)
    assert hub_workplace.json("deploy", spec)["outcome"] == "unchanged"

    moved = hub.push(POET, adapter(r=8))
    planned = hub_workplace.json("plan", spec)
    assert planned["companions"][0]["revision"] == moved
    second = hub_workplace.json("deploy", spec)["release"]
    assert second["revision"] == first["revision"]
    assert (second["companions"][0]["revision"], second["replaced"]) == (moved, first["id"])
    shown = hub_workplace.run("show", second["id"]).stdout
    assert "Adapter poet" in shown
    assert moved in shown

    name = hub_workplace.named("tiny")
    (row,) = hub_workplace.json("lora", "list", name)
    assert (row["name"], row["from"], row["replicas"]) == ("poet", "spec", 1)
    later = f"later=hf://{POET}"
    error = hub_workplace.json("lora", "load", name, later, code=2)["error"]
    assert error["cause"] == "adapters-fixed"
    hub_workplace.run("retire", name)
    error = hub_workplace.json("lora", "load", name, later, code=2)["error"]
    assert error["cause"] == "unknown-release"
    assert hub_workplace.is_clean()


def test_what_is_wrong_with_an_adapter_is_told_before_anything_starts(
    hub_workplace: Workplace, hub: Hub, lifecycle_program: Path
) -> None:
    engine = process_engine(lifecycle_program)
    too_small = hub_workplace.spec(
        source=f"hf://{MODEL}", engine=engine, lora=[{**LORA[0], "rank": 2}]
    )
    assert hub_workplace.json("deploy", too_small, code=2)["error"]["cause"] == "bad-spec"
    hub.push(POET, adapter(peft_type="IA3"))
    spec = hub_workplace.spec(source=f"hf://{MODEL}", engine=engine, lora=LORA)
    error = hub_workplace.json("deploy", spec, code=4)["error"]
    assert error["cause"] == "source-incomplete"
    assert "IA3" in error["detail"]
    ended = {(row.state, row.cause) for row in hub_workplace.releases()}
    assert ended == {("error", "bad-spec"), ("error", "source-incomplete")}
    assert hub_workplace.is_clean()


def test_a_draft_model_is_pinned_staged_and_counted(hub_workplace: Workplace, hub: Hub) -> None:
    drafts = {"method": "draft_model", "tokens": 2, "model": f"hf://{MODEL}", "revision": "main"}
    spec = hub_workplace.spec(
        source=f"hf://{MODEL}",
        engine={"name": "vllm", "image": "own/vllm:1"},
        speculative=drafts,
    )
    found = hub_workplace.json("memory", spec, "--accelerator", "24GiB")
    (term,) = (term for term in found["need"]["terms"] if term["name"] == "draft")
    assert term["bytes"] > 0
    assert hub.requests_for("model.safetensors")
