"""`moorage run`: a model for one answer, and nothing left of it (D3)."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.workplace import Workplace

pytestmark = [pytest.mark.process, pytest.mark.server]


def test_a_file_answers_a_prompt_and_nothing_stays(workplace: Workplace, tiny_gguf: Path) -> None:
    engine = {"name": "llama.cpp", "runtime": "process"}
    workplace.run("deploy", workplace.spec(source=f"file://{tiny_gguf}", engine=engine))
    found = workplace.json("run", tiny_gguf, "Every ship finds", "--max-tokens", 8)
    assert found["answer"].strip()
    spoken = workplace.run("run", tiny_gguf, "Every ship finds", "--max-tokens", 8)
    assert spoken.stdout.strip()
    assert left_by_runs(workplace) == set()
    assert workplace.running() == {f"moorage-{workplace.named('tiny')}.v1-r0-leader"}
    row = workplace.json("show", found["release"])
    assert row["state"] == "stopped"
    assert row["placement"]["engine"] == "llama.cpp"


def test_a_server_ends_with_its_terminal(workplace: Workplace, tiny_gguf: Path) -> None:
    command, address = served(workplace, tiny_gguf)
    body = {"model": address["model"], "prompt": "hello", "max_tokens": 2}
    answer = httpx.post(f"{address['url']}/completions", json=body, timeout=60)
    assert answer.json()["usage"]["completion_tokens"] == 2
    command.send_signal(signal.SIGHUP)
    command.communicate(timeout=120)
    assert left_by_runs(workplace) == set()


def test_what_a_killed_run_left_ends_with_the_next(workplace: Workplace, tiny_gguf: Path) -> None:
    command, address = served(workplace, tiny_gguf)
    command.kill()
    command.communicate(timeout=60)
    assert left_by_runs(workplace) == {address["model"]}
    done = workplace.run("run", tiny_gguf, "hello", "--max-tokens", 1)
    assert f"{address['model']} was left by a run that was killed" in done.stdout + done.stderr
    assert left_by_runs(workplace) == set()


def test_a_model_that_does_not_start_leaves_nothing_and_says_why(
    workplace: Workplace, tiny_gguf: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(
        tiny_gguf.read_bytes().replace(b"general.architecture", b"general.architectura")
    )
    error = workplace.json("run", broken, "hello", code=None)["error"]
    assert error["cause"]
    assert error["detail"]
    assert left_by_runs(workplace) == set()
    assert workplace.claims() == ()


def served(workplace: Workplace, model: Path) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    """`moorage run --serve`, once it tells where it answers."""
    command = workplace.spawn("run", model, "--serve", "--json")
    assert command.stdout
    line = command.stdout.readline()
    assert line, command.communicate()[1]
    return command, json.loads(line)


def left_by_runs(workplace: Workplace) -> set[str]:
    """Models of runs that hold something: a process, a claim, a lock."""
    processes = {name.removeprefix("moorage-").rpartition(".v")[0] for name in workplace.running()}
    claims = {claim.release.rpartition(".v")[0] for claim in workplace.claims()}
    locks = {path.name for path in (workplace.home / "runs").glob("*")}
    return {name for name in processes | claims | locks if name.startswith("run-")}
