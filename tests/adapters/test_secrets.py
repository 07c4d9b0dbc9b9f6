from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from prefect.blocks.system import Secret
from prefect.settings import PREFECT_API_URL, get_current_settings, temporary_settings

from moorage.adapters.files.safe_files import write_private
from moorage.adapters.ledger.locks import Owner
from moorage.adapters.prefect import api_login
from moorage.adapters.prefect.home_server import FOLDER, LOGIN, RunningServer
from moorage.adapters.secrets import (
    find_key,
    learn_secrets,
    provide_key,
    provide_secrets,
    read_secrets,
    redact,
    redact_failure,
)
from moorage.common.failures import Cause, Failure
from moorage.engines.api_key import key_name
from tasks.journal import journal, step, tell
from tests.prefect_server import PrefectServer, prefect_server
from tests.tasks.test_journal import Ear

__all__ = ["prefect_server"]

NAME = key_name("tiny")

VALUE = "open-sesame-4711"


def test_a_variable_of_the_environment_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM_TOKEN", "sesame")
    assert read_secrets(["TEAM_TOKEN"]) == {"TEAM_TOKEN": "sesame"}
    assert read_secrets([]) == {}


def test_a_value_that_a_file_or_echo_wrote_ends_before_its_newline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TEAM_TOKEN", "sesame\n")
    assert read_secrets(["TEAM_TOKEN"]) == {"TEAM_TOKEN": "sesame"}


@pytest.mark.parametrize("empty", ["", " ", "\n"])
def test_an_empty_variable_counts_as_none(empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM_TOKEN", empty)
    monkeypatch.setattr("moorage.adapters.secrets.read_block", {"TEAM_TOKEN": "block"}.get)
    assert read_secrets(["TEAM_TOKEN"]) == {"TEAM_TOKEN": "block"}

    monkeypatch.setattr("moorage.adapters.secrets.read_block", {}.get)
    with pytest.raises(Failure) as caught:
        read_secrets(["TEAM_TOKEN"])
    assert caught.value.cause is Cause.SECRET_MISSING


@pytest.mark.server
def test_else_it_is_a_secret_block_of_the_server(prefect_server: PrefectServer) -> None:
    with temporary_settings(prefect_server.settings):
        Secret(value="open").save("block-token", _sync=True)  # type: ignore[call-arg]
        assert read_secrets(["BLOCK_TOKEN", "block-token"]) == {
            "BLOCK_TOKEN": "open",
            "block-token": "open",
        }


@pytest.mark.server
def test_all_that_are_missing_are_named(prefect_server: PrefectServer) -> None:
    with (
        temporary_settings(prefect_server.settings),
        pytest.raises(Failure, match="NO_SUCH, OTHER") as caught,
    ):
        read_secrets(["OTHER", "NO_SUCH"])
    assert caught.value.cause is Cause.SECRET_MISSING
    assert "block `no-such` or `export NO_SUCH=...`" in (caught.value.suggestion or "")


@pytest.mark.server
def test_a_name_that_no_shell_can_export_is_a_block(prefect_server: PrefectServer) -> None:
    with temporary_settings(prefect_server.settings), pytest.raises(Failure) as caught:
        read_secrets(["hf-token"])
    assert "`hf-token`" in (caught.value.suggestion or "")
    assert "export" not in (caught.value.suggestion or "")


@pytest.mark.usefixtures("no_api")
@pytest.mark.parametrize("has_database", [True, False])
def test_without_a_configured_server_the_kept_one_is_asked_if_it_may_know_a_block(
    prefect_server: PrefectServer,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    has_database: bool,
) -> None:
    with temporary_settings(prefect_server.settings):
        Secret(value="open").save("kept-token", overwrite=True, _sync=True)  # type: ignore[call-arg]
    write_private(home / FOLDER / LOGIN, prefect_server.login, over=False)
    monkeypatch.setenv("MOORAGE_SERVER", "kept")
    monkeypatch.setenv("PREFECT_HOME", str(home))
    if has_database:
        (home / "prefect.db").touch()
    started = []

    def start(home: Path, _: float) -> RunningServer:
        started.append(home)
        return RunningServer(url=prefect_server.url, process=Owner.of(os.getpid()), kept=True)

    monkeypatch.setattr(api_login, "kept_server", start)
    if has_database:
        assert read_secrets(["KEPT_TOKEN"]) == {"KEPT_TOKEN": "open"}
    else:
        with pytest.raises(Failure, match="does not exist: KEPT_TOKEN"):
            read_secrets(["KEPT_TOKEN"])
    assert started == [home] * has_database
    assert get_current_settings().api.url is None, "the server may end before this process does"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def no_api() -> object:
    with temporary_settings(restore_defaults={PREFECT_API_URL}):
        yield


@pytest.mark.usefixtures("no_api")
def test_without_an_api_a_key_is_a_file_of_this_user_alone(home: Path) -> None:
    assert find_key(NAME) is None
    key = provide_key(NAME)
    assert len(key) > 40
    assert (find_key(NAME), provide_key(NAME)) == (key, key)
    file = home / "keys" / NAME
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [path.name for path in file.parent.iterdir()] == [NAME]


@pytest.mark.usefixtures("no_api")
def test_models_have_different_keys_and_a_race_ends_with_one() -> None:
    assert provide_key(key_name("a")) != provide_key(key_name("b"))
    found: list[str] = []
    crowd = [threading.Thread(target=lambda: found.append(provide_key(NAME))) for _ in range(8)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    assert set(found) == {find_key(NAME)}


@pytest.mark.usefixtures("no_api")
def test_only_a_launch_makes_a_key() -> None:
    with pytest.raises(Failure, match=NAME) as caught:
        read_secrets([NAME])
    assert caught.value.cause is Cause.SECRET_MISSING
    made = provide_secrets([NAME])
    assert read_secrets([NAME]) == made


@pytest.mark.usefixtures("no_api")
def test_a_home_that_cannot_be_written_is_told(home: Path) -> None:
    (home / "keys").write_text("in the way")
    with pytest.raises(Failure) as caught:
        provide_key(NAME)
    assert caught.value.cause is Cause.STORE_UNWRITABLE


@pytest.mark.usefixtures("no_api")
def test_a_key_that_cannot_be_stored_is_left_nowhere(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    with pytest.raises(Failure) as caught:
        provide_key(NAME)
    assert caught.value.cause is Cause.STORE_UNWRITABLE
    assert list((home / "keys").iterdir()) == []


@pytest.mark.server
def test_with_an_api_a_key_is_a_block_that_every_worker_reads(
    prefect_server: PrefectServer, home: Path
) -> None:
    name = key_name("block.model")
    with temporary_settings(prefect_server.settings):
        key = provide_key(name)
        block = Secret.load(name, _sync=True)  # type: ignore[call-arg]
        assert isinstance(block, Secret)
        assert block.get() == key
        assert (find_key(name), provide_key(name)) == (key, key)
    assert not (home / "keys").exists()


@pytest.mark.server
def test_a_key_of_the_time_before_the_api_moves_there(prefect_server: PrefectServer) -> None:
    name = key_name("earlier-model")
    with temporary_settings(restore_defaults={PREFECT_API_URL}):
        key = provide_key(name)
    with temporary_settings(prefect_server.settings):
        assert find_key(name) == key, "what was started before still asks for it"
        assert provide_key(name) == key
        assert Secret.load(name, _sync=True).get() == key  # type: ignore[call-arg,union-attr]


def test_an_api_that_does_not_answer_is_no_reason_for_another_key(home: Path) -> None:
    with (
        temporary_settings({PREFECT_API_URL: "http://127.0.0.1:1/api"}),
        pytest.raises(Failure) as caught,
    ):
        provide_key(NAME)
    assert caught.value.cause is Cause.SERVER_UNAVAILABLE
    assert not (home / "keys").exists()


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAVE_TOKEN", VALUE)
    read_secrets(["CAVE_TOKEN"])


def test_what_was_read_once_is_taken_out_of_every_text() -> None:
    assert redact(f"say {VALUE}!") == "say [secret CAVE_TOKEN]!"


def test_a_value_that_was_changed_is_known_beside_the_old_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CAVE_TOKEN", "another-word")
    learn_secrets(["CAVE_TOKEN", "NO_SUCH_SECRET"])
    assert redact(f"{VALUE} another-word") == "[secret CAVE_TOKEN] [secret CAVE_TOKEN]"


def test_a_failure_tells_no_secret_in_any_of_its_parts() -> None:
    failure = Failure(
        Cause.ENGINE_EXITED, f"saw {VALUE}", log_tail=f"a\n{VALUE}", evidence=f"Error: {VALUE}"
    )
    found = redact_failure(failure)
    parts = (str(found), repr(found), found.detail, found.log_tail, found.evidence, found.args)
    assert VALUE not in repr(parts)
    assert found.cause is Cause.ENGINE_EXITED


def test_what_leaves_a_step_is_clean_whatever_raised_it() -> None:
    def fail() -> None:
        with step("verify") as note:
            note.say(f"with {VALUE}")
            tell(f"a note of {VALUE}")
            raise Failure(Cause.BAD_ANSWER, f"answered {VALUE}")

    ear = Ear()
    with journal(ear) as opened, pytest.raises(Failure) as caught:
        fail()
    assert VALUE not in str(caught.value)
    assert VALUE not in repr(ear.heard)
    assert VALUE not in repr(opened.steps)
