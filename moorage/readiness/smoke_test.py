"""The smoke test: golden prompts that a release must answer, fast enough, before it takes over."""

from collections.abc import Sequence
from typing import Any

from moorage.common.failures import Cause, Failure
from moorage.common.units import human_seconds, short_number
from moorage.common.values import Value
from moorage.readiness.answers import Generation, problem_of, read_generation, shorten
from moorage.readiness.protocol import generation
from moorage.spec import ModelSpec, PromptSpec

SHOWN = 300
"""Most characters of a prompt and of an answer in a record."""


class Answer(Value):
    """One golden prompt and its answer, both shortened.

    Attributes:
        tokens: Tokens of the answer; None = the engine does not count them.
        wrong: Why the answer fails; empty = it passes.
    """

    asked: str
    answered: str = ""
    seconds: float
    tokens: int | None = None
    wrong: str = ""


class SmokeTestResult(Value):
    """The outcome of the smoke test for one replica.

    Attributes:
        tokens_per_second: Over all answers; None = the engine does not count its tokens.
        before: The mean speed of the predecessor's replicas; None = it was not measured with these
            prompts.
        against: The id of that predecessor; empty = no comparison.
        wrong: Failures of the replica; empty = it passes.
    """

    workload: str
    answers: tuple[Answer, ...]
    tokens_per_second: float | None = None
    before: float | None = None
    against: str = ""
    wrong: str = ""

    @property
    def slowest(self) -> float:
        """Seconds of its slowest answer."""
        return max((answer.seconds for answer in self.answers), default=0.0)

    @property
    def summary(self) -> str:
        """The outcome in one line."""
        if self.wrong:
            return self.wrong
        summary = f"{len(self.answers)} prompts, slowest {human_seconds(self.slowest)}"
        if self.tokens_per_second is not None:
            summary += f", {short_number(self.tokens_per_second)} tokens/s"
        if self.before is not None:
            summary += f" ({self.against}: {short_number(self.before)})"
        return summary


def request_of(spec: ModelSpec, prompt: PromptSpec, *, chat: bool) -> tuple[str, dict[str, Any]]:
    """The HTTP path and body of a golden prompt.

    A model without a chat template gets the messages of a conversation as lines of one prompt.
    """
    messages = [message.model_dump() for message in prompt.messages]
    path, body = generation(prompt_text(prompt), messages, prompt.max_tokens, chat=chat)
    return path, {"model": spec.name, **body}


def prompt_text(prompt: PromptSpec) -> str:
    """A golden prompt as one text."""
    return prompt.prompt or "\n".join(message.content for message in prompt.messages)


def read_answer(status: int, answer: Any) -> Generation:
    """Read an engine's answer; with status 0 there is none, and `answer` says why."""
    wrong = problem_of(status, answer)
    return Generation(wrong=wrong) if wrong else read_generation(answer)


def judge_answer(
    prompt: PromptSpec, back: Generation, seconds: float, found: bool | None
) -> Answer:
    """Judge an answer that took `seconds` by the limits of its golden prompt.

    `found` says whether the answer matches the pattern; None = the search took too long.
    """
    return Answer(
        asked=shorten(prompt_text(prompt), SHOWN),
        answered=shorten(back.content, SHOWN),
        seconds=round(seconds, 3),
        tokens=back.tokens,
        wrong=back.wrong or _mistake(prompt, back, seconds, found),
    )


def gate_of(
    workload: str,
    answers: Sequence[Answer],
    *,
    before: tuple[str, float] | None = None,
    least: float | None = None,
) -> SmokeTestResult:
    """The outcome of a replica, from one answer for each golden prompt.

    `before` is the predecessor and its tokens per second; None = no comparison. The replica must
    reach the share `least` of that speed; None = any speed passes.
    """
    wrong = [f"asked {a.asked!r}, answered {a.answered!r}: {a.wrong}" for a in answers if a.wrong]
    speed = _speed(answers)
    against, earlier = before or ("", None)
    if least and earlier and not wrong:
        wrong += _slow(speed, least, against, earlier)
    return SmokeTestResult(
        workload=workload,
        answers=tuple(answers),
        tokens_per_second=speed,
        before=earlier,
        against=against,
        wrong=f"{workload}: {'; '.join(wrong)}" if wrong else "",
    )


def gate_failure(gates: Sequence[SmokeTestResult]) -> Failure | None:
    """Why a release must not serve, by the outcomes of its replicas; None = it may."""
    wrong = [gate.wrong for gate in gates if gate.wrong]
    return Failure(Cause.GATE_FAILED, "; ".join(wrong)) if wrong else None


def comparable(prompts: Sequence[PromptSpec], others: Sequence[PromptSpec]) -> bool:
    """Whether two releases have the same prompts, so that their speeds are comparable."""
    fields = {"prompt", "messages", "max_tokens"}
    questions = [one.model_dump(include=fields) for one in prompts]
    return questions == [one.model_dump(include=fields) for one in others]


def speed_of(gates: Sequence[SmokeTestResult]) -> float | None:
    """Mean tokens per second over a release's replicas; None = not measured on all of them."""
    speeds = [gate.tokens_per_second for gate in gates if gate.tokens_per_second is not None]
    return round(sum(speeds) / len(speeds), 3) if speeds and len(speeds) == len(gates) else None


def _mistake(prompt: PromptSpec, back: Generation, seconds: float, found: bool | None) -> str:
    if found is None:
        return f"searching it for {prompt.expect!r} took too long: the pattern backtracks"
    if not found:
        is_cut = back.tokens and not back.content and back.finish == "length"
        hint = ": reasoning may have taken all its tokens, raise `max_tokens`" if is_cut else ""
        return f"{prompt.expect!r} is not in it{hint}"
    if prompt.max_seconds is not None and seconds > prompt.max_seconds:
        return f"it took {human_seconds(seconds)}, more than {prompt.max_seconds:g} s"
    return ""


def _speed(answers: Sequence[Answer]) -> float | None:
    tokens = [answer.tokens for answer in answers]
    seconds = sum(answer.seconds for answer in answers)
    if not tokens or None in tokens or seconds <= 0:
        return None
    return round(sum(count or 0 for count in tokens) / seconds, 3)


def _slow(speed: float | None, least: float, against: str, earlier: float) -> list[str]:
    if speed is None:
        return ["the engine does not count its tokens, so its speed cannot be compared"]
    if speed >= least * earlier:
        return []
    share = speed / earlier
    return [
        f"{short_number(speed)} tokens/s, {share:.2f} of the {short_number(earlier)} of {against};"
        f" {least:g} required"
    ]
