"""Answers of an engine: their faults, and the generated text."""

import math
from dataclasses import dataclass
from typing import Any

from moorage.common.printable import clipped, printable
from moorage.common.units import human_bytes
from moorage.common.values import Value
from moorage.readiness.media import decode_picture
from moorage.readiness.protocol import Probe

SHOWN, QUOTED, MOST_NAMES = 200, 40, 10
"""Most characters of an answer and of an image, and most listed names, in a message."""

MOST_TOKENS = 10**9
"""Most tokens of one answer; a larger count is invalid."""


FINISHED = ("stop", "length")
"""Finish reasons of complete text, with which a text need have no counted tokens."""

BROKEN = ("abort", "error")
"""Finish reasons of text that broke off."""


class Unreadable(Value):
    """Placeholder for an answer that could not be read or was refused."""

    why: str
    """Its fault; completes the sentence "the answer ..."."""

    def __str__(self) -> str:
        return f"the answer {self.why}"


@dataclass(frozen=True, slots=True)
class Generation:
    """The text of an answer, and the reason why it ended."""

    text: Any = None
    finish: Any = None
    tokens: int | None = None
    """Tokens by the engine's count; None = it does not count."""

    wrong: str = ""
    """Why the answer is not valid; empty = it is valid."""

    @property
    def content(self) -> str:
        """The text; empty where the answer has none."""
        return str(self.text or "")


REFUSALS = frozenset({400, 401, 403, 404, 405, 422})
"""HTTP statuses with which an engine permanently refuses a request."""


def is_final(probe: Probe, status: int) -> bool:
    """Whether a bad answer is final, so that retries of the probe are useless."""
    return not probe.patient and (status == 200 or status in REFUSALS)


def judge(probe: Probe, status: int, answer: Any) -> tuple[str, str]:
    """Compare an answer with the kind that the probe expects.

    Returns:
        The fault (empty when the answer is good), and an excerpt for the record.
    """
    wrong = problem_of(status, answer)
    if wrong and (status, probe.expects) != (200, "status"):
        return wrong, ""
    return JUDGES[probe.expects](probe, answer)


def problem_of(status: int, answer: Any) -> str:
    """Why an answer cannot be judged; empty = it can. Status 0 means no connection."""
    if status != 200:
        return f"HTTP {status}: {shorten(answer)}" if status else shorten(answer)
    return str(answer) if isinstance(answer, Unreadable) else ""


def completion_tokens(answer: Any) -> int | None:
    """Tokens of an answer by the engine's count; None = it does not count.

    Raises:
        ValueError: The count is not a valid number of tokens.
    """
    usage = answer.get("usage") if isinstance(answer, dict) else None
    count = usage.get("completion_tokens") if isinstance(usage, dict) else None
    if count is None or (type(count) is int and 0 <= count <= MOST_TOKENS):
        return count
    raise ValueError(f"{shorten(repr(count))} is no number of tokens")


def shorten(answer: Any, longest: int = SHOWN) -> str:
    """An answer as a quotation in a message: short, and without control characters."""
    return clipped(printable(str(answer)[: longest + 1]), longest)


def read_generation(answer: Any) -> Generation:
    """Read the generated text from an answer to a conversation or a plain prompt."""
    choice = next(iter(_items(answer, "choices")), {})
    message, finish = choice.get("message"), choice.get("finish_reason")
    text = message.get("content") if isinstance(message, dict) else choice.get("text")
    unfinished = Generation(text, finish, wrong=f"finish reason {shorten(repr(finish))}")
    if finish in BROKEN:
        return unfinished
    try:
        tokens = completion_tokens(answer)
    except ValueError as error:
        return Generation(text, finish, wrong=str(error))
    if finish not in FINISHED and not (text and tokens):
        return unfinished
    if tokens == 0 or (tokens is None and not text):
        return Generation(None, finish, wrong="no token was generated")
    return Generation(text, finish, tokens)


def _judge_running(_probe: Probe, answer: Any) -> tuple[str, str]:
    return ("", answer["detail"]) if answer["ready"] else (answer["detail"], "")


def _judge_listed(probe: Probe, answer: Any) -> tuple[str, str]:
    names = [str(entry.get("id")) for entry in _items(answer, "data")]
    if probe.name in names:
        return "", f"listed as {probe.name}"
    others = shorten(", ".join(names[:MOST_NAMES]))
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return f"'{probe.name}' is not listed, but {others or 'nothing'}{more}", ""


def _judge_text(_probe: Probe, answer: Any) -> tuple[str, str]:
    found = read_generation(answer)
    if found.wrong and found.finish not in FINISHED:
        return f"nothing was generated ({found.wrong}): {shorten(answer)}", ""
    kept = "" if found.wrong else f"{shorten(repr(found.text))} ({shorten(found.finish, QUOTED)})"
    return found.wrong, kept


def _judge_generated(_probe: Probe, answer: Any) -> tuple[str, str]:
    """Judge an answer of Triton's `generate`, whose backend writes `N/A` for a missing text."""
    found = answer if isinstance(answer, dict) else {}
    text, count = found.get("text_output"), found.get("num_output_tokens")
    tokens = count if type(count) is int else 0
    if not isinstance(text, str) or not (0 < tokens <= MOST_TOKENS or text not in ("", "N/A")):
        return f"nothing was generated ({shorten(answer)})", ""
    return "", f"{shorten(repr(text))} (generate)"


def _judge_vector(_probe: Probe, answer: Any) -> tuple[str, str]:
    vector = next(iter(_items(answer, "data")), {}).get("embedding")
    if not isinstance(vector, list) or not vector or not _all_finite(vector):
        return "the embedding is empty or not finite", ""
    return "", f"a vector of {len(vector)}"


def _judge_scores(_probe: Probe, answer: Any) -> tuple[str, str]:
    # SGLang answers with a bare list, and names the scores differently.
    listed = {"results": answer} if isinstance(answer, list) else answer
    scores = [
        entry.get("relevance_score", entry.get("score")) for entry in _items(listed, "results")
    ]
    if len(scores) < 2 or not _all_finite(scores):
        return "the scores are missing or not finite", ""
    return "", f"{len(scores)} scores"


def _judge_labels(_probe: Probe, answer: Any) -> tuple[str, str]:
    shares = next(iter(_items(answer, "data")), {}).get("probs")
    if not isinstance(shares, list) or not shares or not _all_finite(shares):
        return "the labels' probabilities are missing or not finite", ""
    return "", f"probabilities of {len(shares)} labels"


def _judge_transcript(_probe: Probe, answer: Any) -> tuple[str, str]:
    """Judge a transcript. Its text may be empty: the tone contains no words."""
    text = answer.get("text") if isinstance(answer, dict) else None
    if not isinstance(text, str):
        return f"no transcript ({shorten(answer)})", ""
    return "", f"{shorten(repr(text))} (transcript)"


def _judge_picture(_probe: Probe, answer: Any) -> tuple[str, str]:
    """Judge an image. Its URL is not fetched: an engine could make moorage call other servers."""
    entry = next(iter(_items(answer, "data")), {})
    text = entry.get("b64_json") or entry.get("url")
    if not isinstance(text, str):
        return f"no picture ({shorten(answer)})", ""
    try:
        name, content = decode_picture(text)
    except ValueError as error:
        return f"no picture in base64: {shorten(error)} ({shorten(text, QUOTED)})", ""
    return "", f"a {name} of {human_bytes(len(content))}"


def _all_finite(numbers: list[Any]) -> bool:
    return all(isinstance(x, int | float) and math.isfinite(x) for x in numbers)


JUDGES = {
    "running": _judge_running,
    "status": lambda _probe, _answer: ("", "HTTP 200"),
    "listed": _judge_listed,
    "text": _judge_text,
    "generated": _judge_generated,
    "vector": _judge_vector,
    "scores": _judge_scores,
    "labels": _judge_labels,
    "transcript": _judge_transcript,
    "picture": _judge_picture,
}


def _items(answer: Any, key: str) -> list[dict[str, Any]]:
    entries = answer.get(key) if isinstance(answer, dict) else None
    if not isinstance(entries, list):
        return []
    return [entry for entry in entries if isinstance(entry, dict)]
