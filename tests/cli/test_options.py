"""Names on the command line, and the suggestions for unknown ones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from moorage.adapters.ledger import Ledger
from moorage.cli.app import app
from moorage.cli.options import release_of
from moorage.common.failures import ExitCode, Failure
from moorage.releases.states import ReleaseState
from tests.adapters.ledger.test_routes import started, switch


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """A ledger in which tiny.v1 serves."""
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path))
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        switch(ledger, started(ledger))
        yield ledger


@pytest.mark.parametrize("text", ["tiny", "tiny.v1", "ti"])
def test_a_model_an_id_or_how_it_begins(ledger: Ledger, text: str) -> None:
    assert release_of(ledger, text).id == "tiny.v1"


@pytest.mark.parametrize(
    ("text", "hint"),
    [("tinny", "Did you mean 'tiny'?"), ("tiny.v2", "'tiny'"), ("llama", "status"), ("", "status")],
)
def test_what_stands_for_nothing_is_told_with_the_nearest_name(
    ledger: Ledger, text: str, hint: str
) -> None:
    with pytest.raises(Failure, match=f"has the name '{text}'") as failure:
        release_of(ledger, text)
    assert hint in failure.value.suggestion


def test_that_no_log_is_left_is_told_beside_the_output(ledger: Ledger) -> None:
    ledger.releases.move("tiny.v1", ReleaseState.STOPPING)
    ledger.releases.end("tiny.v1", ReleaseState.STOPPED)
    for workload in ledger.releases.get("tiny.v1").workloads:
        ledger.workloads.drop(workload.name)
    result = CliRunner().invoke(app, ["logs", "tiny"])
    assert (result.exit_code, result.stdout) == (0, "")
    assert "the log of tiny.v1 was removed: it is stopped" in result.stderr


@pytest.mark.usefixtures("ledger")
@pytest.mark.parametrize(
    "command",
    [
        *(("history",), ("show",), ("status",), ("diff",), ("rollback",), ("chat", "hello")),
        *(("retire",), ("load",), ("unload",)),
    ],
)
def test_every_command_suggests_it(command: tuple[str, ...]) -> None:
    error = refused(command[0], "tinny", *command[1:])
    assert (error["cause"], "'tiny'?" in error["suggestion"]) == ("unknown-release", True)


@pytest.mark.usefixtures("ledger")
@pytest.mark.parametrize("name", ["../tiny", "größe", "a;rm", "", "a" * 300, "a\nb"])
@pytest.mark.parametrize("command", ["rollback", "retire"])
def test_what_can_be_no_name_is_told_in_words(command: str, name: str) -> None:
    error = refused(command, name)
    assert error["cause"] == "bad-setting"
    assert "allowed: letters, digits" in error["detail"]
    assert len(error["detail"]) < 200


@pytest.mark.usefixtures("ledger")
@pytest.mark.parametrize(
    "command",
    [
        *(("history",), ("show",), ("status",), ("endpoint",), ("diff",), ("chat", "hello")),
        *(("retire",), ("key", "revoke"), ("key", "create")),
    ],
)
def test_a_byte_that_is_no_text_is_no_damage_of_the_ledger(command: tuple[str, ...]) -> None:
    at = 2 if command[0] == "key" else 1
    error = refused(*command[:at], "caf\udce9", *command[at:])
    assert error["cause"] in ("bad-setting", "unknown-release")
    assert "udce9" in ascii(error["detail"])


def test_a_model_of_the_hub_in_place_of_a_spec_is_told_how_to_get_one() -> None:
    assert (
        "`moorage init NAME Qwen/Qwen3-0.6B`" in refused("deploy", "Qwen/Qwen3-0.6B")["suggestion"]
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("engines install vlm", "found 'vlm'; allowed: auto, vllm, .* Did you mean 'vllm'"),
        ("run --engine vlm org/repo", "found 'vlm'; allowed: auto, vllm, .* Did you mean 'vllm'"),
        ("serve --limit 0", "found '0'; allowed: at least 1"),
        ("serve --port x", "found 'x'; allowed: a whole number"),
    ],
)
def test_an_argument_is_refused_in_the_words_of_a_spec(words: str, told: str) -> None:
    done = CliRunner().invoke(app, words.split())
    assert done.exit_code == ExitCode.BAD_INPUT
    assert re.search(told, " ".join(done.output.replace("│", "").split())), done.output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("status --no-such", "No such option"),
        ("--no-such status", "No such option"),
        ("no-such", "No such command 'no-such'"),
        ("models no-such", "No such command 'no-such'"),
        ("chat", "Missing argument"),
        ("redeploy --at-once x", "Invalid value for '--at-once': found 'x'"),
        ("engines install vlm", "found 'vlm'; allowed: auto, vllm"),
        ("logs tiny", "No such option: --json"),
    ],
)
def test_a_program_gets_a_wrong_command_line_as_data(words: str, told: str) -> None:
    error = refused(*words.split())
    assert (error["cause"], error["exit_code"]) == ("bad-setting", 2)
    assert told in error["detail"]
    assert "--help` lists" in error["suggestion"]


def test_after_two_dashes_json_is_a_word_like_others() -> None:
    done = CliRunner().invoke(app, ["no-such", "--", "--json"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "No such command" in done.stderr


def refused(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == ExitCode.BAD_INPUT, result.output
    found: dict[str, Any] = json.loads(result.stdout)["error"]
    return found


@pytest.mark.parametrize("words", [["-h"], ["deploy", "-h"], ["engines", "install", "-h"]])
def test_help_has_a_short_name_everywhere(words: list[str]) -> None:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0
    assert "Usage: " in done.output


def test_the_version_is_printed() -> None:
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.output) == (0, f"moorage {version('moorage')}\n")
