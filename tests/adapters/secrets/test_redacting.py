from __future__ import annotations

import pytest

from moorage.adapters.secrets.redacting import redact, redact_failure
from moorage.adapters.secrets.secrets import learn_secrets, read_secrets
from moorage.common.failures import Cause, Failure
from tasks.journal import journal, step, tell
from tests.tasks.test_journal import Ear

VALUE = "open-sesame-4711"


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
            tell(f"told {VALUE}")
            raise Failure(Cause.BAD_ANSWER, f"answered {VALUE}")

    ear = Ear()
    with journal(ear) as opened, pytest.raises(Failure) as caught:
        fail()
    assert VALUE not in str(caught.value)
    assert VALUE not in repr(ear.heard)
    assert VALUE not in repr(opened.steps)
