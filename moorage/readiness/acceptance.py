"""The acceptance load: the speed of a release under load, and its limits."""

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from moorage.common.failures import Cause, Failure
from moorage.common.units import counted, short_number, short_seconds
from moorage.common.values import Value
from moorage.readiness.protocol import generation
from moorage.spec import ModelSpec
from moorage.spec.acceptance import AcceptanceSpec

ROUNDS = 3
"""A release fails if it misses a limit in this many rounds: a single round is easily disturbed."""

LEAST_SECONDS = 0.001
"""Smaller slowdowns are ignored, whatever their ratio: clocks and threads vary by as much."""

SLOWER_SHARE = 0.75
"""Share of turns in which a release must be slower than its predecessor to count as slower. Both
get a few requests in each turn, so a single disturbed turn means little."""

WORDS = ("river", "seven", "maple", "quiet", "north", "amber", "lantern", "copper")


class Sample(Value):
    """One request of a load.

    Attributes:
        ttft: Seconds until the first piece of the answer.
        tpot: Seconds per token after that; None = the answer has no further tokens.
        wrong: Why the answer is incomplete or missing; empty = it is complete.
    """

    ttft: float = 0.0
    tpot: float | None = None
    tokens: int = 0
    wrong: str = ""


class Turn(NamedTuple):
    """The samples of both releases in one turn, taken one right after the other."""

    now: Sequence[Sample]
    before: Sequence[Sample]


class LoadFigures(Value):
    """Measurements of a load. Times are in seconds, over the answered requests.

    Attributes:
        problem: The error of the first failed request; empty = none failed.
        goodput: Requests per second that met both limits.
    """

    requests: int
    failed: int = 0
    problem: str = ""
    ttft_p50: float | None = None
    ttft_p95: float | None = None
    tpot_p50: float | None = None
    tpot_p95: float | None = None
    tokens_per_second: float = 0.0
    goodput: float = 0.0

    @property
    def summary(self) -> str:
        """The figures in one line."""
        times = (("TTFT", self.ttft_p50, self.ttft_p95), ("TPOT", self.tpot_p50, self.tpot_p95))
        shown = [
            f"{name} p50 {short_seconds(middle)} p95 {short_seconds(most)}"
            for name, middle, most in times
            if middle is not None and most is not None
        ]
        speed, goodput = short_number(self.tokens_per_second), short_number(self.goodput)
        return ", ".join([*shown, f"{speed} tokens/s", f"goodput {goodput} requests/s"])


class Acceptance(Value):
    """The outcome of a release's load, from the deciding round.

    Attributes:
        before: Figures of the predecessor, which got the same load; None = no comparison.
        against: The id of that predecessor.
        misses: Limits that were missed in this round; empty = the release passed.
        warn_only: Whether the release serves despite misses.
        rounds: Number of rounds that ran.
    """

    figures: LoadFigures
    before: LoadFigures | None = None
    against: str = ""
    misses: tuple[str, ...] = ()
    warn_only: bool = False
    rounds: int = 1

    @property
    def failure(self) -> Failure | None:
        """Why the release must not serve; None = it may."""
        failed = self.misses and not self.warn_only
        return Failure(Cause.ACCEPTANCE_FAILED, self.summary) if failed else None

    @property
    def summary(self) -> str:
        """The outcome in one line."""
        if self.misses:
            text = "; ".join(self.misses)
            return f"warning: {text}" if self.warn_only else text
        before = f" ({self.against}: {self.before.summary})" if self.before else ""
        return f"{self.figures.summary}{before}"


def load_request(
    spec: ModelSpec, load: AcceptanceSpec, number: int, *, chat: bool
) -> tuple[str, dict[str, Any]]:
    """The HTTP path and body of the n-th request of a load, with a streamed answer."""
    prompt = _prompt(number, load.prompt_words)
    path, body = generation(prompt, [], load.max_tokens, chat=chat)
    streamed = {"stream": True, "stream_options": {"include_usage": True}}
    return path, {"model": spec.name, **body, **streamed}


def load_figures(samples: Sequence[Sample], seconds: float, load: AcceptanceSpec) -> LoadFigures:
    """The figures of a load that took `seconds`, from its requests."""
    answered = [one for one in samples if not one.wrong]
    ttft = sorted(one.ttft for one in answered)
    tpot = sorted(one.tpot for one in answered if one.tpot is not None)
    good = sum(_meets(one, load) for one in answered)
    return LoadFigures(
        requests=len(samples),
        failed=len(samples) - len(answered),
        problem=first_problem(samples),
        ttft_p50=percentile(ttft, 0.5),
        ttft_p95=percentile(ttft, 0.95),
        tpot_p50=percentile(tpot, 0.5),
        tpot_p95=percentile(tpot, 0.95),
        tokens_per_second=_rate(sum(one.tokens for one in answered), seconds),
        goodput=_rate(good, seconds),
    )


def first_problem(samples: Sequence[Sample]) -> str:
    """The error of the first failed request; empty = none failed."""
    return next((one.wrong for one in samples if one.wrong), "")


def judge_load(
    load: AcceptanceSpec, now: LoadFigures, turns: Sequence[Turn] = (), against: str = ""
) -> tuple[str, ...]:
    """The limits that a round (`now`) missed; empty = none.

    `turns` are all turns so far with the predecessor, `against` its id; empty = no comparison.
    """
    failed = f"{now.failed} of {counted(now.requests, 'request')} failed: {now.problem}"
    found = [failed] if now.failed else []
    limits = (("TTFT", now.ttft_p95, load.ttft_p95), ("TPOT", now.tpot_p95, load.tpot_p95))
    for name, value, limit in limits:
        if limit is not None and now.failed < now.requests:
            found += _over(name, value, limit)
    if load.max_slowdown is not None:
        found += _slower("ttft", turns, load.max_slowdown, against)
        found += _slower("tpot", turns, load.max_slowdown, against)
    return tuple(found)


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """The value that `share` of the sorted values do not exceed; None = no values."""
    if not ordered:
        return None
    return round(ordered[max(math.ceil(share * len(ordered)) - 1, 0)], 6)


def _prompt(number: int, words: int) -> str:
    """A text with a unique beginning for each number, so that prefix caches do not hit."""
    rest = (WORDS[(number * 5 + place * 3) % len(WORDS)] for place in range(words - 1))
    return " ".join((f"{number}:", *rest))


def _meets(sample: Sample, load: AcceptanceSpec) -> bool:
    pairs = ((sample.ttft, load.ttft_p95), (sample.tpot, load.tpot_p95))
    return all(limit is None or value is None or value <= limit for value, limit in pairs)


def _rate(amount: int, seconds: float) -> float:
    return round(amount / seconds, 3) if seconds > 0 else 0.0


def _over(name: str, value: float | None, limit: float) -> list[str]:
    if value is None:
        return [f"no answer shows its {name}, which is limited: each came in one piece"]
    if value <= limit:
        return []
    return [f"{name} p95 {short_seconds(value)}; at most {short_seconds(limit)} allowed"]


def _slower(
    figure: Literal["ttft", "tpot"], turns: Sequence[Turn], most: float, against: str
) -> list[str]:
    medians = [
        (value, earlier)
        for turn in turns
        if (value := _median(figure, turn.now)) and (earlier := _median(figure, turn.before))
    ]
    slower = [
        (value, earlier)
        for value, earlier in medians
        if value > most * earlier and value - earlier >= LEAST_SECONDS
    ]
    if not slower or len(slower) < SLOWER_SHARE * len(medians):
        return []
    value, earlier = (percentile(sorted(side), 0.5) or 0 for side in zip(*medians, strict=True))
    return [
        f"{figure.upper()} {short_seconds(value)}, {value / earlier:.2f} times the"
        f" {short_seconds(earlier)} of {against}; at most {most:g} times allowed"
    ]


def _median(figure: Literal["ttft", "tpot"], samples: Sequence[Sample]) -> float | None:
    values = (getattr(one, figure) for one in samples if not one.wrong)
    return percentile(sorted(value for value in values if value is not None), 0.5)
