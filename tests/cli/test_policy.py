"""`moorage policy`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from moorage.cli.app import app
from tests.policies import written_policy


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PWD", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.yaml").write_text("hosts: [{name: other, ports: 30000-30010}]")
    (tmp_path / "spec.yaml").write_text(
        "{name: x, source: hf://a/b, engine: {name: transformers, command: [sh]}}"
    )


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["policy", *words])


def content(*words: str) -> Any:
    return json.loads(run(*words, "--json").stdout)


def test_a_spec_is_judged_as_if_it_came_through_the_api() -> None:
    assert run("check", "spec.yaml").exit_code == 2
    error = content("check", "spec.yaml", "--fleet", "other.yaml")["error"]
    assert error["cause"] == "policy-refused"
    assert [one["rule"] for one in error["violations"]] == ["api.own_fleet", "api.commands"]


def test_or_as_the_command_lines_own() -> None:
    assert content("check", "spec.yaml", "--as", "cli") == {
        "allowed": True,
        "as": "cli",
        "policy": "the default policy",
    }


def test_every_rule_is_shown_with_what_says_so(tmp_path: Path) -> None:
    path = written_policy(tmp_path / "deployments" / "policy.yaml", "api: {commands: true}")
    shown = content("show")
    assert shown["file"] == str(path)
    assert shown["rules"]["api.commands"] == {"value": True, "origin": str(path)}
    assert shown["rules"]["api.privileged"] == {"value": False, "origin": "default"}
    assert "api.commands" in run("show").stdout


def test_a_policy_with_a_mistake_is_bad_input(tmp_path: Path) -> None:
    written_policy(tmp_path / "deployments" / "policy.yaml", "api: {command: true}")
    for words in (["show"], ["check", "spec.yaml"]):
        assert run(*words).exit_code == 2
        assert "Did you mean 'commands'" in content(*words)["error"]["detail"]
