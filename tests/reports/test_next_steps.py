"""What a person can copy from the record of a release that serves."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.common.failures import Cause
from moorage.common.values import Origin
from moorage.engines.flags import Variable
from moorage.releases.release import FailureRecord
from moorage.reports.next_steps import form_section, next_steps, python_client, release_forms
from moorage.spec import Mode
from tests.builders import a_container, a_plan, a_profile, a_release, a_workload

URL = "http://127.0.0.1:40000"
SERVES: dict[str, Any] = {"workloads": (a_workload(endpoint=URL),)}


def steps(mode: Mode = Mode.COMPLETION, **changes: Any) -> str:
    profile = a_profile(mode=mode, has_chat_template=False)
    return next_steps(a_release(profile=profile, **{**SERVES, **changes})).code


@pytest.mark.parametrize(
    ("mode", "shown"),
    [
        (Mode.COMPLETION, f"curl {URL}/v1/completions \\\n  -H"),
        (Mode.COMPLETION, '"prompt": "Say hello.",\n       "max_tokens": 64}'),
        (Mode.COMPLETION, "moorage chat tiny"),
        (Mode.EMBEDDING, f"curl {URL}/v1/embeddings \\\n  -H"),
        (Mode.EMBEDDING, '-d \'{"model": "tiny",\n       "input": "Say hello."}\''),
        (Mode.RERANKING, f"curl {URL}/rerank \\\n  -H"),
        (Mode.TRANSCRIPTION, "moorage retire tiny"),
    ],
)
def test_each_mode_has_its_request(mode: Mode, shown: str) -> None:
    assert shown in steps(mode)


@pytest.mark.parametrize(
    ("mode", "method"),
    [
        (Mode.COMPLETION, "completions.create"),
        (Mode.EMBEDDING, "embeddings.create"),
        (Mode.RERANKING, ""),
        (Mode.TRANSCRIPTION, ""),
    ],
)
def test_openais_package_asks_what_it_has_a_method_for(mode: Mode, method: str) -> None:
    profile = a_profile(mode=mode, has_chat_template=False)
    code = python_client(a_release(profile=profile, **SERVES)).code
    assert (f"client.{method}(" in code) == bool(method)
    compile(code, "the snippet", "exec")


def test_only_models_that_talk_are_talked_with_and_sound_is_no_json() -> None:
    assert "chat" not in steps(Mode.EMBEDDING)
    assert "curl" not in steps(Mode.TRANSCRIPTION)


def test_a_release_that_replaced_another_can_be_rolled_back() -> None:
    assert "rollback" not in steps()
    assert "moorage rollback tiny    # tiny.v0 runs again" in steps(replaced="tiny.v0")


@pytest.mark.parametrize(
    ("secret", "shown"),
    [
        ("", ""),
        ("moorage-key-tiny", '-H "Authorization: Bearer $(moorage key show tiny)" \\'),
        ("own", '-H "Authorization: Bearer $KEY" \\'),
    ],
)
def test_a_key_is_named_and_never_shown(secret: str, shown: str) -> None:
    key = Variable(name="VLLM_API_KEY", secret=secret, origin=Origin.DEFAULT, reason="")
    container = a_container(environment=(key,) if secret else ())
    found = steps(plan=a_plan(container))
    assert ("Authorization" in found, shown in found) == (bool(secret), True)


def test_forms_are_links_with_the_name_filled_in() -> None:
    forms = release_forms(a_release(replaced="tiny.v0", **SERVES))
    assert [form.parameters for form in forms] == [
        {"name": "tiny"},
        {"names": ["tiny"]},
        {"name": "tiny"},
    ]
    links = {form.label: f"http://pages/{form.deployment}" for form in forms[::2]}
    assert form_section(links).text == (
        "[Roll back to tiny.v0](http://pages/rollback-model/rollback) \u00b7"
        " [Retire it](http://pages/retire-model/retire)"
    )
    assert release_forms(a_release())[0].label == "Redeploy it"
    assert form_section({}).text == ""


@pytest.mark.parametrize(
    "changes",
    [
        {"workloads": ()},
        {"workloads": (a_workload(endpoint=URL, base_path="/v2"),)},
        {"failure": FailureRecord(cause=Cause.BAD_ANSWER, detail="", suggestion="")},
    ],
)
def test_what_serves_nobody_has_no_steps(changes: dict[str, Any]) -> None:
    assert steps(**changes) == ""
