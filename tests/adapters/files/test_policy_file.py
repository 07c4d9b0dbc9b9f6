"""The policy file: where it is looked for, and when it is not trusted."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from moorage.adapters.files.policy_file import (
    find_policy,
    folders_of,
    load_policy,
    load_site_fleet,
    project_folder,
    roots_of,
)
from moorage.adapters.files.specs import InvalidFile
from moorage.adapters.system.settings import Settings
from moorage.common.failures import Cause, Failure
from moorage.inventory.fleet import Fleet
from tests.builders import a_spec
from tests.policies import written_policy

COMMANDS = "api: {commands: true}\n"


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MOORAGE_POLICY", "MOORAGE_PROJECT", "PWD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path / "home"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def test_without_a_file_the_default_counts() -> None:
    assert load_policy(Settings()).file == ""
    assert load_site_fleet(load_policy(Settings()), Settings()) == Fleet()


def test_the_file_of_the_folder_counts_and_the_one_that_is_named_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = written_policy(tmp_path / "here" / "deployments" / "policy.yaml", COMMANDS)
    found = load_policy(Settings())
    assert (found.file, found.policy.api.commands) == (str(own), True)
    named = written_policy(tmp_path / "named.yaml", "api: {packages: true}\n")
    monkeypatch.setenv("MOORAGE_POLICY", "../named.yaml")
    found = load_policy(Settings())
    assert (Path(found.file).resolve(), found.policy.api.commands) == (named, False)


def test_a_worker_that_runs_flows_in_empty_folders_has_that_of_its_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = tmp_path / "shell"
    written_policy(shell / "deployments" / "policy.yaml", COMMANDS)
    (shell / "prefect.yaml").touch()
    monkeypatch.setenv("PWD", str(shell))
    assert find_policy(Settings()) == shell / "deployments" / "policy.yaml"
    assert project_folder(Settings()) == shell
    monkeypatch.setenv("MOORAGE_PROJECT", str(tmp_path))
    assert project_folder(Settings()) == tmp_path


def writable_by_others(path: Path) -> None:
    path.chmod(0o666)


def writable_by_the_group(path: Path) -> None:
    path.chmod(0o660)


def in_a_folder_of_everybody(path: Path) -> None:
    path.parent.chmod(0o777)


def of_somebody_else(path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root gives files away")
    os.chown(path, 4711, 4711)


def missing(path: Path) -> None:
    path.unlink()


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def in_circles(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


def malformed(path: Path) -> None:
    path.write_text("api: [")


def empty(path: Path) -> None:
    path.write_text("")


def no_text(path: Path) -> None:
    path.write_bytes(b"\xff\xfe")


@pytest.mark.parametrize(
    "spoil",
    [
        *(writable_by_others, writable_by_the_group, in_a_folder_of_everybody, of_somebody_else),
        *(missing, a_folder, a_pipe, in_circles, malformed, empty, no_text),
    ],
)
def test_a_file_that_cannot_be_read_or_trusted_allows_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Path], None]
) -> None:
    path = written_policy(tmp_path / "there" / "policy.yaml", COMMANDS)
    monkeypatch.setenv("MOORAGE_POLICY", str(path))
    assert load_policy(Settings()).policy.api.commands
    spoil(path)
    with pytest.raises(InvalidFile) as raised:
        load_policy(Settings())
    assert raised.value.cause is Cause.BAD_SETTING
    assert str(path) in raised.value.detail


def test_a_file_that_is_found_but_leads_nowhere_is_not_taken_for_none(tmp_path: Path) -> None:
    folder = tmp_path / "here" / "deployments"
    folder.mkdir()
    (folder / "policy.yaml").symlink_to(tmp_path / "gone.yaml")
    with pytest.raises(InvalidFile, match="cannot be read"):
        load_policy(Settings())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("api: {comands: true}", r"api\.comands: unknown key; .* Did you mean 'commands'?"),
        ("apy: {}", r"apy: unknown key; allowed are api, cli, fleet\. Did you mean 'api'?"),
        ("api: {runtimes: [dokcer]}", r"api\.runtimes\[0\]: found 'dokcer'.*'docker'"),
        ("cli: {replicas: -1}", r"cli\.replicas: .*at least 0"),
        ("api: {registries: ['https://x']}", "a registry or a part of it"),
    ],
)
def test_a_mistake_is_told_with_its_path_and_a_suggestion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.setenv("MOORAGE_POLICY", str(written_policy(tmp_path / "p.yaml", text)))
    with pytest.raises(InvalidFile, match=message) as raised:
        load_policy(Settings())
    assert "moorage explain policy" in raised.value.suggestion


def test_the_fleet_of_the_policy_is_the_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written_policy(tmp_path / "here" / "deployments" / "policy.yaml", "fleet: fleets/all.yaml")
    with pytest.raises(Failure, match=r"fleets/all\.yaml"):
        load_site_fleet(load_policy(Settings()), Settings())
    written_policy(tmp_path / "here" / "fleets" / "all.yaml", "hosts: [{name: local}]")
    (host,) = load_site_fleet(load_policy(Settings()), Settings()).hosts
    assert host.name == "local"
    monkeypatch.setenv("MOORAGE_PROJECT", str(tmp_path))
    with pytest.raises(Failure, match=r"fleets/all\.yaml"):
        load_site_fleet(load_policy(Settings()), Settings())


def test_roots_and_sources_are_compared_with_links_followed(tmp_path: Path) -> None:
    models = tmp_path / "here" / "models"
    models.mkdir()
    (models / "out").symlink_to("/etc")
    spec = a_spec(
        source=f"file://{models}/out/ssl",
        lora=[{"name": "a", "source": f"file://{models}/a"}],
        speculative={"method": "draft_model", "tokens": 1, "model": "file:///opt/draft"},
    )
    assert folders_of(spec) == (
        ("source", os.path.realpath("/etc/ssl")),
        ("lora[0].source", str(models / "a")),
        ("speculative.model", "/opt/draft"),
    )
    assert roots_of(["store", "models", "/srv"], Settings()) == (
        str(tmp_path / "home" / "models"),
        str(tmp_path / "home" / "adapters"),
        str(models),
        "/srv",
    )
