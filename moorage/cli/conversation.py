"""Conversation with a model, on a terminal or in a pipe."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import typer
from rich.text import Text

from moorage.adapters.engines.engine_http import (
    GATEWAY_ERRORS,
    Answer,
    Late,
    NoAnswer,
    Question,
    Unreachable,
    ask_engine_now,
)
from moorage.adapters.engines.engine_stream import stream_text
from moorage.adapters.secrets import redact
from moorage.cli.output import err, say
from moorage.common.failures import Cause, Failure
from moorage.common.printable import printable
from moorage.common.strict_json import JsonError
from moorage.common.units import counted
from moorage.readiness.answers import shorten
from moorage.readiness.protocol import triton_request
from moorage.releases.release_row import ReleaseRow
from moorage.spec import Mode

ANSWER_SECONDS = 600
WAKING_SECONDS = 300
"""Longest wait for the first piece of an answer, since a request may have to wake its model."""

BYE = ("/bye", "/exit")

Message = dict[str, str]


class Conversation:
    """A chat with a model; each prompt is sent with all earlier messages.

    Args:
        base: Base URL, such as `http://127.0.0.1:8000`.
        api_key: API key that the URL requires; empty = none.
        instead: Advice for a model that cannot chat.

    Raises:
        Failure: `BAD_ANSWER` for a model that cannot chat.
    """

    def __init__(
        self, row: ReleaseRow, base: str, api_key: str, max_tokens: int, instead: str = ""
    ) -> None:
        profile = row.release.profile if row.release else None
        if profile and profile.mode != Mode.COMPLETION:
            detail = f"{row.model} is a model for {profile.mode}, which cannot chat"
            raise Failure(Cause.BAD_ANSWER, detail, suggestion=instead)
        self._model, self._base, self._key, self._max_tokens = row.model, base, api_key, max_tokens
        self._talks = profile is None or profile.has_chat_template
        self._speaks_openai = all(one.speaks_openai for one in row.serving)
        self._messages: list[Message] = []

    def ask(
        self,
        prompt: str,
        usage: dict[str, Any] | None = None,
        on_thought: Callable[[str], None] | None = None,
    ) -> Iterator[str]:
        """The answer, piece by piece; `usage` receives the engine's token counts.

        `on_thought` gets what the model thinks, which is no part of the answer.
        """
        if not self._speaks_openai:
            yield _text(self.answer(prompt))
            return
        messages, answer = [*self._messages, {"role": "user", "content": prompt}], ""
        question = self._question(prompt, messages, stream=True, usage=usage is not None)
        pieces = stream_text(
            question, ANSWER_SECONDS, pause=WAKING_SECONDS, usage=usage, on_thought=on_thought
        )
        try:
            for piece in pieces:
                answer += piece
                yield piece
        except NoAnswer as error:
            raise _failure_of(error, question) from error
        # Only now: if an answer breaks off, it and its prompt are left out of the chat.
        self._messages = [*messages, {"role": "assistant", "content": answer}]

    def answer(self, prompt: str) -> Any:
        """The answer's body for a prompt, sent without earlier messages."""
        question = self._question(prompt, [{"role": "user", "content": prompt}])
        try:
            return _content(ask_engine_now(question, WAKING_SECONDS), question.url)
        except NoAnswer as error:
            raise _failure_of(error, question) from error
        except JsonError as error:
            raise Failure(Cause.BAD_ANSWER, f"{question.url}: the answer {error}") from error

    def _question(
        self, prompt: str, messages: Sequence[Message], *, stream: bool = False, usage: bool = False
    ) -> Question:
        """The request in the API of the release's engine."""
        if not self._speaks_openai:
            path, body = triton_request(self._model, prompt, {"max_tokens": self._max_tokens})
            return Question(f"{self._base}{path}", "POST", body, api_key=self._key)
        path = "/v1/chat/completions" if self._talks else "/v1/completions"
        prompted = {"messages": messages} if self._talks else {"prompt": prompt}
        figures = {"stream_options": {"include_usage": True}} if usage else {}
        body = {"model": self._model, "max_tokens": self._max_tokens, "stream": stream}
        return Question(
            f"{self._base}{path}", "POST", {**body, **prompted, **figures}, api_key=self._key
        )


def talk(conversation: Conversation, *, figures: bool = False) -> None:
    """Chat on the terminal until Ctrl-D, Ctrl-C or `/bye`."""
    say("Type a message; /bye or Ctrl-D ends.")
    with suppress(EOFError, KeyboardInterrupt):
        while (line := input("> ").strip()) not in BYE:
            if line:
                show(conversation, line, figures=figures)


def show(conversation: Conversation, prompt: str, *, figures: bool = False) -> None:
    """Print an answer as it arrives, and with `figures` its speed."""
    usage: dict[str, Any] | None = {} if figures else None
    begun, first, pieces, thoughts = time.monotonic(), 0.0, 0, Thoughts()
    try:
        for piece in conversation.ask(prompt, usage, thoughts.show):
            thoughts.end()
            first, pieces = first or time.monotonic() - begun, pieces + 1
            sys.stdout.write(printable(piece))
            sys.stdout.flush()
    finally:
        thoughts.end()
    sys.stdout.write("\n")
    sys.stdout.flush()  # so that standard error begins on a new line
    if thoughts.seen and not pieces:
        typer.echo("it thought, and did not answer; `--max-tokens` allows more", err=True)
    if usage is not None:
        _show_figures(usage.get("completion_tokens"), pieces, first, time.monotonic() - begun)


class Thoughts:
    """What a model thinks before it answers: shown on a terminal, and never part of the output.

    Attributes:
        seen: Whether it thought.
    """

    def __init__(self) -> None:
        self.seen = self._is_open = False

    def show(self, piece: str) -> None:
        """Show a piece."""
        self.seen = True
        if err.is_terminal:
            self._is_open = True
            err.print(Text(printable(piece)), style="dim", end="", soft_wrap=True)

    def end(self) -> None:
        """Begin a new line if the last one is not ended."""
        if self._is_open:
            err.print()
            self._is_open = False


def read_prompt(*, answers_once: bool, input_taken: bool = False) -> str:
    """A prompt from standard input; empty = standard input is a terminal to talk on.

    Args:
        answers_once: Whether the command cannot talk, as with `--json`.
        input_taken: Whether standard input holds something else.

    Raises:
        Failure: `BAD_SETTING` when there is no prompt, and no terminal to talk on.
    """
    if input_taken:
        raise _no_prompt("standard input is the spec", "Pass the prompt as an argument.")
    on_terminal = sys.stdin.isatty()
    if on_terminal and not answers_once:
        return ""
    if not on_terminal and (prompt := sys.stdin.read().strip()):
        return prompt
    why = "--json prints one answer" if on_terminal else "no terminal to talk on"
    raise _no_prompt(why, "Pass the prompt as an argument, or on standard input.")


def _no_prompt(why: str, advice: str) -> Failure:
    return Failure(Cause.BAD_SETTING, f"there is no prompt, and {why}", suggestion=advice)


def _show_figures(stated: object, pieces: int, first: float, seconds: float) -> None:
    tokens = stated if isinstance(stated, int) else pieces
    rate = tokens / max(seconds, 0.001)
    speed = f"{counted(tokens, 'token')} in {seconds:.2f} s, {rate:.1f} tokens/s"
    typer.echo(f"{speed}, the first after {first:.2f} s", err=True)


def _failure_of(error: NoAnswer, question: Question) -> Failure:
    silent = isinstance(error, Unreachable | Late)
    cause = Cause.ENGINE_UNREACHABLE if silent else Cause.BAD_ANSWER
    return Failure(cause, f"{question.url}: {redact(str(error))}")


def _content(back: Answer, url: str) -> Any:
    if back.status != 200:
        detail = f"{url}: HTTP {back.status}: {redact(shorten(back.text))}"
        gone = back.status in GATEWAY_ERRORS
        raise Failure(Cause.ENGINE_UNREACHABLE if gone else Cause.BAD_ANSWER, detail)
    return back.json()


def _text(content: Any) -> str:
    """The text in a Triton answer."""
    try:
        return str(content["text_output"])
    except (KeyError, TypeError):
        detail = f"the answer contains no text: {redact(shorten(content))}"
        raise Failure(Cause.BAD_ANSWER, detail) from None
