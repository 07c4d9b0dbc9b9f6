"""Command lines that moorage makes are command lines that vLLM takes."""

from __future__ import annotations

import json
from pathlib import Path

from moorage.engines.schema.reading import read
from tests.engines.schema.shipped import STORE

GOLDEN = Path(__file__).parents[2] / "golden" / "plans"
INSTALLED = "0.32.0"


def lines() -> list[tuple[str, str, list[str]]]:
    """Golden plan, engine version, and the words after `vllm`, of each container.

    What another program reads (vllm-omni, an own command, entrypoint or run command) is left out.
    """
    found = []
    for path in sorted(GOLDEN.glob("*.json")):
        plan = json.loads(path.read_text())
        for container in plan["containers"] if plan["engine"] == "vllm" else []:
            words = [word for flag in container["command"] for word in flag["tokens"]]
            reasons = " ".join(flag["reason"] for flag in container["command"])
            # With `--omni` vLLM hands the line to vllm-omni, whose parser is another one.
            if "run_command" in reasons or "entrypoint" in reasons or "--omni" in words:
                continue
            if words[1] == "serve" and Path(words[0]).name == "vllm":
                found.append((path.stem, plan["engine_version"], words[1:]))
    return found


def test_every_line_is_taken_by_the_schema_of_its_version() -> None:
    checked = 0
    for name, version, (_, _, *words) in lines():
        schema = STORE.of_version(version.removesuffix("rc1") or INSTALLED)
        if schema is None:
            continue
        reading = read(tuple(words), schema)
        assert (reading.problems, reading.unknown, reading.stray) == ((), (), ()), name
        checked += 1
    assert checked >= 30
