"""`moorage chat` and `run`: answers as they come, and what was said before."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from moorage.cli.app import app
from moorage.cli.conversation import Conversation, read_prompt, show, talk
from moorage.common.failures import Cause, Failure
from moorage.spec import Mode
from tests.builders import a_profile, a_release
from tests.http_server import QuietHandler, serving
from tests.releases.test_release import row

USAGE = {"completion_tokens": 2}


class Engine(QuietHandler):
    """Counts the messages that it is sent; one that asks for no stream gets none."""

    bodies: list[dict[str, Any]]
    status: int
    deltas: list[dict[str, str]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.bodies.append(body)
        count = str(len(body["messages"]))
        self.send_response(self.status)
        kind = "text/event-stream" if body["stream"] else "application/json"
        self.send_header("content-type", kind)
        self.end_headers()
        if not body["stream"]:
            self.wfile.write(json.dumps({"choices": [{"message": {"content": count}}]}).encode())
            return
        deltas = self.deltas or [{"content": word} for word in (count, "!\x1b[2J")]
        events: list[dict[str, Any]] = [{"choices": [{"delta": one}]} for one in deltas]
        for event in (*events, {"choices": [], "usage": USAGE}):
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())


@pytest.fixture
def conversation() -> Iterator[Conversation]:
    Engine.bodies, Engine.status, Engine.deltas = [], 200, []
    with serving(Engine) as port:
        served = row(a_release(profile=a_profile()))
        yield Conversation(served, f"http://127.0.0.1:{port}", "", 8)


def typed(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    waiting = iter(lines)

    def answer(_: str) -> str:
        try:
            return next(waiting)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", answer)


def test_each_question_comes_with_all_that_was_said_before(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed(monkeypatch, "hello", "", "  and you?", "/bye", "never")
    talk(conversation)
    assert capsys.readouterr().out.splitlines()[1:] == ["1!\\x1b[2J", "3!\\x1b[2J"]
    assert [one["content"] for one in Engine.bodies[1]["messages"]] == [
        "hello",
        "1!\x1b[2J",
        "and you?",
    ]


def test_a_prompt_whose_answer_breaks_off_was_never_said(conversation: Conversation) -> None:
    next(conversation.ask("lost"))  # whoever reads it goes away after the first piece
    assert list(conversation.ask("hello")) == ["1", "!\x1b[2J"]


def test_figures_are_the_engines_own_and_no_part_of_the_answer(
    conversation: Conversation, capsys: pytest.CaptureFixture[str]
) -> None:
    show(conversation, "hello", figures=True)
    printed = capsys.readouterr()
    assert printed.out == "1!\\x1b[2J\n"
    assert printed.err.startswith("2 tokens in ")
    assert Engine.bodies[0]["stream_options"] == {"include_usage": True}


THINKS = [
    {"reasoning": "Hm", "reasoning_content": "Hm"},
    {"reasoning_content": ", 2.\x1b[2J"},
]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_what_a_model_thinks_is_shown_on_a_terminal_and_is_no_part_of_the_answer(
    conversation: Conversation,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    is_terminal: bool,
) -> None:
    Engine.deltas = [*THINKS, {"content": "Two"}]
    monkeypatch.setattr(Console, "is_terminal", is_terminal)
    show(conversation, "1 + 1?")
    shown = "Hm, 2.\\x1b[2J\n" if is_terminal else ""
    assert capsys.readouterr() == ("Two\n", shown)
    show(conversation, "and 2 + 2?")
    assert Engine.bodies[1]["messages"][1]["content"] == "Two"


def test_a_model_that_only_thought_says_how_it_may_answer(
    conversation: Conversation, capsys: pytest.CaptureFixture[str]
) -> None:
    Engine.deltas = THINKS
    show(conversation, "1 + 1?")
    printed = capsys.readouterr()
    assert printed.out == "\n"
    assert "`--max-tokens` allows more" in printed.err


def test_json_is_the_whole_answer_of_the_engine(conversation: Conversation) -> None:
    assert conversation.answer("hello") == {"choices": [{"message": {"content": "1"}}]}


def test_an_engine_that_has_ended_gave_no_wrong_answer() -> None:
    served = row(a_release(profile=a_profile()))
    dead = Conversation(served, "http://127.0.0.1:9", "", 8)
    for ask in (lambda: list(dead.ask("hello")), lambda: dead.answer("hello")):
        with pytest.raises(Failure, match=r"127\.0\.0\.1:9/.*Connection refused") as caught:
            ask()
        assert caught.value.cause is Cause.ENGINE_UNREACHABLE
        assert "`moorage status`" in caught.value.suggestion


def test_a_gateway_that_reaches_no_engine_is_no_wrong_answer(conversation: Conversation) -> None:
    Engine.status = 503
    for ask in (lambda: list(conversation.ask("hello")), lambda: conversation.answer("hello")):
        with pytest.raises(Failure, match="HTTP 503") as caught:
            ask()
        assert caught.value.cause is Cause.ENGINE_UNREACHABLE


def test_a_model_that_cannot_chat_says_what_it_is_for() -> None:
    served = row(a_release(profile=a_profile(mode=Mode.EMBEDDING)))
    with pytest.raises(Failure, match="a model for embedding, which cannot chat"):
        Conversation(served, "http://127.0.0.1:9", "", 8)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stdin", "once", "taken", "outcome"),
    [
        (io.StringIO("  hello \n"), False, False, "hello"),
        (io.StringIO("  hello \n"), True, False, "hello"),
        (Terminal(), False, False, ""),
        (io.StringIO(), False, False, Failure),
        (Terminal(), True, False, Failure),
        (io.StringIO("name: tiny"), False, True, Failure),
    ],
)
def test_a_prompt_comes_from_standard_input_or_from_a_talk(
    monkeypatch: pytest.MonkeyPatch, stdin: io.StringIO, once: bool, taken: bool, outcome: object
) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    if isinstance(outcome, str):
        assert read_prompt(answers_once=once, input_taken=taken) == outcome
        return
    with pytest.raises(Failure, match="there is no prompt") as caught:
        read_prompt(answers_once=once, input_taken=taken)
    assert caught.value.cause is Cause.BAD_SETTING


def test_a_spec_on_standard_input_is_not_taken_for_the_prompt() -> None:
    spec = "name: tiny\nsource: file:///nowhere\n"
    done = CliRunner().invoke(app, ["run", "-", "--json"], input=spec)
    assert done.exit_code == 2, done.output
    assert "standard input is the spec" in json.loads(done.stdout)["error"]["detail"]
