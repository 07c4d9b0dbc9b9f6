"""What `moorage apply` does by itself, without a flow."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from moorage.adapters.files.written_specs import write_specs
from moorage.adapters.hosts.liveness import Liveness
from moorage.adapters.ledger import Ledger
from moorage.cli import apply as files
from moorage.cli.app import app
from moorage.releases.states import ReleaseState
from tests.adapters.ledger.test_routes import started, switch
from tests.builders import a_spec


@pytest.mark.parametrize("sleeps", [False, True])
def test_labels_are_written_into_the_record_without_a_flow_run_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sleeps: bool
) -> None:
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path))
    alive = Liveness(alive=True, detail="")
    monkeypatch.setattr(files, "liveness_of", lambda rows, _: [alive] * len(rows))
    monkeypatch.setattr(files, "call_flow", lambda *_, **__: pytest.fail("a flow was run"))
    write_specs(tmp_path / "specs", [a_spec(labels={"tier": "gold"})], overwrite=False)
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        switch(ledger, started(ledger))
        if sleeps:
            ledger.releases.move("tiny.v1", ReleaseState.STOPPING)
            ledger.releases.end("tiny.v1", ReleaseState.ASLEEP)
        done = CliRunner().invoke(app, ["apply", str(tmp_path / "specs"), "--yes", "--json"])
        assert done.exit_code == 0, done.output
        (applied,) = json.loads(done.stdout)["applied"]
        assert (applied["action"], applied["outcome"]) == ("note", "done")
        assert applied["release"] == "tiny.v1"
        row = ledger.releases.get("tiny.v1")
        assert row.as_it_runs is not None
        assert row.as_it_runs.spec.labels == {"tier": "gold"}


def test_a_model_of_moorage_run_is_not_exported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        for name in ("run-tiny-0a1b2c", "tiny"):
            spec = a_spec(name=name)
            switch(ledger, started(ledger, spec), spec=spec)
    done = CliRunner().invoke(app, ["export", "out", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == {"files": ["out/tiny.yaml"]}


def test_several_models_are_not_forced_by_deploy(tmp_path: Path) -> None:
    write_specs(tmp_path, [a_spec()], overwrite=False)
    done = CliRunner().invoke(app, ["deploy", str(tmp_path), "--force"])
    assert done.exit_code == 2
    assert "moorage redeploy --force" in done.output
