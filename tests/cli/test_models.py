"""`moorage models` on this machine's own store: listed, made room in, looked at for damage."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from moorage.adapters.ledger import Ledger
from moorage.adapters.sources.store import Manifest, ModelStore
from moorage.adapters.system.settings import Settings
from moorage.adapters.transfer.store_cleanup import OwnStore
from moorage.cli import models
from moorage.cli.app import app
from moorage.cli.output import WIDE, out
from moorage.models.source import ModelFile, WeightSummary
from moorage.operations.stored_models import Need, Stored
from moorage.spec import ModelSpec

DAY = 86_400


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(out, "_width", WIDE)
    for name, days in (("old", 40), ("new", 1)):
        kept(tmp_path / "home" / "models", name, days)
    return tmp_path / "home"


def kept(models: Path, name: str, days: int) -> None:
    store = ModelStore(models, f"acme/{name}")
    commit = name[0] * 40
    (store.open_workspace(commit) / "a.bin").write_bytes(b"hello" * 1000)
    manifest = Manifest(
        source=f"hf://acme/{name}",
        revision=commit,
        files=(ModelFile(name="a.bin", size=5000),),
        skipped=(),
        weights=WeightSummary(family="bin", bytes=5000),
    )
    store.publish(store.with_checksums(manifest, {}))
    moment = time.time() - days * DAY
    os.utime(store.directory(commit) / ".moorage.json", (moment, moment))


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["models", *words])


def listed(*words: str) -> list[dict[str, Any]]:
    done = run(*words, "--json")
    assert done.exit_code == 0, done.output
    return list(json.loads(done.output))


def test_what_is_kept_is_shown_with_its_age() -> None:
    shown = run().output
    assert "hf://acme/old" in shown
    assert "nobody" in shown
    assert {one["source"] for one in listed()} == {"hf://acme/old", "hf://acme/new"}


def test_what_would_go_is_only_shown_until_it_is_wanted() -> None:
    would = run("prune", "--older-than", "30d").output
    assert "hf://acme/old" in would
    assert "hf://acme/new" not in would
    assert "would be freed; pass --yes to remove" in would
    assert len(listed()) == 2
    assert [one["source"] for one in listed("prune", "--older-than", "30d", "--yes")] == [
        "hf://acme/old"
    ]
    assert [one["source"] for one in listed()] == ["hf://acme/new"]


def test_the_one_that_was_deployed_longest_ago_goes_first() -> None:
    gone = listed("prune", "--keep", "8KB", "--yes")
    assert [one["source"] for one in gone] == ["hf://acme/old"]


@pytest.mark.parametrize("source", ["hf://acme/old", "file://{models}/acme--old/" + "o" * 40])
def test_what_a_release_begins_to_need_stays(home: Path, source: str) -> None:
    spec = ModelSpec(name="tiny", source=source.format(models=home / "models"))
    release = Ledger(Settings().ledger).releases.begin(spec, "o" * 40, "a-run")
    used = {one["source"]: one["used_by"] for one in listed()}
    assert used == {"hf://acme/old": [release], "hf://acme/new": []}
    assert [one["source"] for one in listed("prune", "--keep", "0", "--yes")] == ["hf://acme/new"]


def test_a_model_that_stays_is_told_and_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    rename = os.rename

    def refuse(path: str, to: str) -> None:
        if "acme--old" in path:
            raise OSError(errno.EROFS, "so")
        rename(path, to)

    monkeypatch.setattr(os, "rename", refuse)
    done = run("prune", "--keep", "0", "--yes", "--json")
    assert done.exit_code == 8, done.output
    assert [one["source"] for one in json.loads(done.stdout)] == ["hf://acme/new"]
    assert f"models/acme--old/{'o' * 40} stays on local: Read-only file system" in done.stderr


def test_a_host_that_is_away_is_no_success_of_prune_either(home: Path) -> None:
    fleet = with_an_absent_host(home)
    done = run("prune", "--older-than", "30d", "--fleet", fleet)
    assert done.exit_code == 8, done.output
    done = run("prune", "--older-than", "30d", "--yes", "--fleet", fleet)
    assert done.exit_code == 8, done.output
    assert "skipped gone: " in done.output
    assert "hf://acme/old" in done.output
    assert [one["source"] for one in listed()] == ["hf://acme/new"]


def test_damage_is_found_and_told(home: Path) -> None:
    (damaged,) = (home / "models" / "acme--new").glob("*/a.bin")
    assert run("verify").exit_code == 0
    damaged.write_bytes(b"hallo" * 1000)
    done = run("verify", "--json")
    assert done.exit_code == 4
    found = {one["path"].split("/")[1]: one["damaged"] for one in json.loads(done.output)}
    assert found == {"acme--new": ["a.bin"], "acme--old": []}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["prune"], "pass --keep"),
        (["prune", "--keep", "much"], "write a size such as 16GiB"),
        (["prune", "--older-than", "long"], "write a time such as 30d"),
        (["prune", "--keep", "0", "--host", "nowhere"], "unknown host nowhere"),
    ],
)
def test_a_wish_that_cannot_be_read_is_refused(words: list[str], expected: str) -> None:
    done = run(*words, "--json")
    assert done.exit_code == 2
    assert expected in json.loads(done.output)["error"]["detail"]


def test_options_count_before_the_command_too() -> None:
    done = run("--host", "nowhere", "--json", "prune", "--keep", "0")
    assert done.exit_code == 2
    assert "unknown host nowhere" in json.loads(done.output)["error"]["detail"]


def with_an_absent_host(home: Path) -> str:
    """A fleet file of this machine and a host that does not answer."""
    away = "{name: gone, address: 'tcp://127.0.0.1:9', bind: 192.0.2.1}"
    fleet = home.with_name("fleet.yaml")
    fleet.write_text(f"hosts: [{{name: local}}, {away}]\n")
    return str(fleet)


def test_a_host_that_is_away_keeps_nobody_from_verifying_the_others(home: Path) -> None:
    done = run("verify", "--fleet", with_an_absent_host(home))
    assert done.exit_code == 8, done.output
    assert "skipped gone: " in done.output
    assert "acme--new" in done.output


def test_a_store_whose_models_may_all_stay_is_not_called_empty() -> None:
    done = run("prune", "--older-than", "99d")
    assert "No unused model is over this limit." in done.output


def test_what_another_host_serves_from_the_same_store_stays(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hosts with one directory, as on NFS: a container of one of them uses a model."""

    class Busy(OwnStore):
        def _users(self, stored: Stored, _: Sequence[Need]) -> Iterable[str]:
            yield from ["container theirs"] if "old" in stored.path else []

    both = (OwnStore("gpu-1", Settings()), Busy("gpu-2", Settings()))
    monkeypatch.setattr(models, "stores_of", lambda *_: both)
    prune = ("prune", "--older-than", "1h", "--host", "gpu-1", "--yes")
    assert [one["source"] for one in listed(*prune)] == ["hf://acme/new"]
    assert (home / "models/acme--old" / ("o" * 40)).is_dir()
    assert {one["host"] for one in listed("--host", "gpu-1")} == {"gpu-1"}
