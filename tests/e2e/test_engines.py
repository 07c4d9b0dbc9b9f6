"""`moorage engines`: an engine is installed, serves a model, and is removed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.e2e.workplace import Workplace

pytestmark = [pytest.mark.process, pytest.mark.server]


def on_host(workplace: Workplace, engine: str, *more: object) -> dict[str, Any]:
    found: dict[str, Any] = workplace.json("engines", "show", engine, *more)["hosts"]["local"]
    return found


def test_an_engine_of_its_own_serves_a_model(workplace: Workplace, tiny_gguf: Path) -> None:
    """The real wheel, from wherever pip takes packages here (D2)."""
    done = workplace.json("engines", "install", "llama.cpp", "--runtime", "process")
    (program,) = done["items"]
    assert program.startswith(str(workplace.home / "engines" / "llama.cpp"))
    again = workplace.json("engines", "install", "llama.cpp", "--runtime", "process")
    assert again["items"] == [program]
    assert workplace.json("engines", "update", "llama.cpp")["items"] == [program]
    assert on_host(workplace, "llama.cpp")["disk"]["packages"] > 2**20

    engine = {"name": "llama.cpp", "runtime": "process"}
    spec = workplace.spec(source=f"file://{tiny_gguf}", engine=engine)
    release = workplace.json("deploy", spec)["release"]
    assert release["plan"]["containers"][0]["command"][0]["tokens"][0] == program
    assert on_host(workplace, "llama.cpp")["used_by"] == [release["id"]]
    refused = workplace.json("engines", "remove", "llama.cpp", code=7)["error"]
    assert workplace.named("tiny") in refused["detail"]

    workplace.run("retire", workplace.named("tiny"))
    version = Path(program).parents[1].name
    removed = workplace.json("engines", "remove", "llama.cpp", "--version", version)
    assert program in removed["items"]
    assert not Path(program).exists()
    assert workplace.json("engines", "remove", "llama.cpp", "--version", version)["items"] == []


@pytest.mark.docker
def test_an_image_is_had_on_a_host_before_a_model_needs_it(
    workplace: Workplace, llama_image: str
) -> None:
    fleet = workplace.folder / "fleet.yaml"
    hosts = YAML(typ="safe").load(fleet)["hosts"]
    own = {"default_version": "1", "versions": {"1": {"image": llama_image}}}
    with fleet.open("w") as file:
        YAML().dump({"hosts": hosts, "engines": {"llama.cpp": own}}, file)
    named = ("--fleet", fleet)
    done = workplace.json("engines", "install", "llama.cpp", "--runtime", "docker", *named)
    assert done["message"] == "local has it"
    assert len(done["items"]) == 1
    there = on_host(workplace, "llama.cpp", *named)
    assert there["status"].endswith("1 as an image")
    assert there["disk"]["images"] > 2**20
    for wrong, why in (("--host", "elsewhere"), ("--version", "none; rm")):
        error = workplace.json("engines", "install", "llama.cpp", wrong, why, *named, code=2)
        assert error["error"]["cause"]
