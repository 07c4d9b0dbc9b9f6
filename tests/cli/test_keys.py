"""What `moorage key` prints and exits with while gateways do not follow."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from moorage.cli import keys
from moorage.cli.app import app
from moorage.cli.options import open_ledger
from moorage.common.failures import Cause, Failure

BEHIND = "gateway main does not follow: its service on box does not answer"


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path))


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["key", *words])


def behind() -> list[str]:
    return [BEHIND]


def lost() -> list[str]:
    raise Failure(Cause.LEDGER_UNAVAILABLE, "so")


def interrupted() -> list[str]:
    raise KeyboardInterrupt


Wait = Callable[[], list[str]]


@pytest.mark.parametrize("wait", [list, behind, lost, interrupted])
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_new_key_is_printed_whatever_the_gateways_do(
    monkeypatch: pytest.MonkeyPatch, wait: Wait, options: tuple[str, ...]
) -> None:
    monkeypatch.setattr(keys, "await_gateways", lambda *_: wait())
    done = run("create", "ann", *options)
    assert done.exit_code == (130 if wait is interrupted else 0), done.output
    secret = json.loads(done.stdout)["key"] if options else done.stdout.strip()
    assert secret.startswith(keys.PREFIX)
    assert [one.name for one in open_ledger().api_keys.all()] == ["ann"]
    assert bool(done.stderr) == (wait is not list)


@pytest.mark.parametrize(
    ("wait", "told"), [(behind, BEHIND), (lost, "the gateways may not follow: ")]
)
def test_a_revoked_key_that_a_gateway_may_accept_is_no_success(
    monkeypatch: pytest.MonkeyPatch, wait: Wait, told: str
) -> None:
    monkeypatch.setattr(keys, "await_gateways", lambda *_: [])
    for name in ("ann", "bob", "cleo"):
        run("create", name)
    done = run("revoke", "ann", "--json")
    assert (done.exit_code, json.loads(done.stdout)["lagging"]) == (0, [])

    monkeypatch.setattr(keys, "await_gateways", lambda *_: wait())
    done = run("revoke", "bob", "--json")
    assert done.exit_code == 8, done.output
    content = json.loads(done.stdout)
    assert content["revoked"] is True
    assert told in content["lagging"][0]
    done = run("revoke", "cleo")
    assert done.exit_code == 8
    assert "a gateway that does not follow still accepts it" in done.stdout.replace("\n", " ")
    assert told in done.stderr
    assert not open_ledger().api_keys.all()


def test_a_revocation_that_is_interrupted_says_what_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keys, "await_gateways", lambda *_: interrupted())
    run("create", "ann")
    done = run("revoke", "ann", "--json")
    assert done.exit_code == 130
    error = json.loads(done.stdout)["error"]
    assert (error["cause"], "ann is revoked" in error["detail"]) == ("interrupted", True)
