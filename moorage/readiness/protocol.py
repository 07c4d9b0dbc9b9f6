"""The readiness protocol: port, health, listed name, one real answer; each in its phase.

An engine that calls itself healthy is not proven to serve; one that generated a token is.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any

from moorage.common.printable import printable
from moorage.common.values import Value
from moorage.models.categories import TRANSCRIBERS
from moorage.models.profile import ModelProfile
from moorage.spec import Mode, ModelSpec, ProbeSpec

SHOWN, MOST_NAMES = 200, 10
"""Characters of an answer, and names that a server lists, that a message quotes."""

MOST_TOKENS = 10**9
"""Of one answer; what claims more does not count."""


class Phase(StrEnum):
    """Phases of a start, in order."""

    DEPLOYED = "deployed"
    LISTENING = "listening"
    HEALTHY = "healthy"
    LISTED = "listed"
    ANSWERED = "answered"


class Probe(Value):
    """One question to the engine.

    Attributes:
        phase: What is proven when the answer is good.
        deadline: Which deadline of the spec applies: `load_seconds`, `warm_up_seconds`, or
            `on_cluster_seconds`.
        method: HTTP method; empty = only a TCP connection.
        path: HTTP path.
        body: JSON to send.
        expects: Kind of answer: `running` (of the runtime, not the engine), `status`, `listed`,
            `text`, `vector`, `scores`, `labels`.
        name: The served name.
        patient: Whether a bad answer may still become a good one while the engine starts.
    """

    phase: Phase
    deadline: str
    method: str = ""
    path: str = ""
    body: dict[str, Any] | None = None
    expects: str = "status"
    name: str = ""
    patient: bool = True


class Unreadable(Value):
    """What stands in the place of an answer that is not taken in.

    Attributes:
        why: What is wrong with it; completes "the answer ...".
    """

    why: str

    def __str__(self) -> str:
        return f"the answer {self.why}"


class ProbeResult(Value):
    """How a phase was passed.

    Attributes:
        phase: The phase.
        seconds: From the start of the engine until the phase was passed.
        attempts: How often it was asked.
        detail: What was answered.
    """

    phase: Phase
    seconds: float
    attempts: int
    detail: str = ""


class Readiness(Value):
    """What step `verify` makes: the proof for every replica.

    Attributes:
        workload: Name of the container or process.
        endpoint: Base URL.
        probes: Each phase with its time.
        first_token_seconds: Duration of the request that was answered; 0 when none was asked.
    """

    workload: str
    endpoint: str
    probes: tuple[ProbeResult, ...]
    first_token_seconds: float = 0.0


def readiness_probes(
    spec: ModelSpec, profile: ModelProfile, *, lists_models: bool
) -> tuple[Probe, ...]:
    """The questions for a model, in the order in which they are asked."""
    probes = [
        Probe(phase=Phase.LISTENING, deadline="load_seconds"),
        Probe(
            phase=Phase.HEALTHY,
            deadline="load_seconds",
            method="GET",
            path=spec.readiness.probe.path,
        ),
    ]
    return (*probes, *_answers(spec, profile, lists_models=lists_models))


def application_probes(
    spec: ModelSpec, profile: ModelProfile, *, lists_models: bool
) -> tuple[Probe, ...]:
    """The questions for an application of Ray Serve.

    Ray itself tells when the application runs; its proxy listens and holds requests long before.
    """
    path = spec.readiness.probe.path
    own = Probe(phase=Phase.HEALTHY, deadline="warm_up_seconds", method="GET", path=path)
    return (
        Probe(phase=Phase.DEPLOYED, deadline="on_cluster_seconds", expects="running"),
        Probe(phase=Phase.LISTENING, deadline="warm_up_seconds"),
        # Ray Serve LLM has no path for health; whoever names one has it.
        *([own] if path != ProbeSpec().path else []),
        *_answers(spec, profile, lists_models=lists_models),
    )


def _answers(spec: ModelSpec, profile: ModelProfile, *, lists_models: bool) -> list[Probe]:
    """Whether the name is listed, and a real request."""
    probes = []
    if lists_models:
        probes.append(
            Probe(
                phase=Phase.LISTED,
                deadline="warm_up_seconds",
                method="GET",
                path="/v1/models",
                expects="listed",
                name=spec.name,
            )
        )
    if spec.readiness.probe.request and _answers_json(profile):
        probes.append(_request(spec, profile))
    return probes


def _answers_json(profile: ModelProfile) -> bool:
    """What a picture is asked with differs from model to model, and speech is sent as a file."""
    silent = profile.mode == Mode.COMPLETION and not TRANSCRIBERS.isdisjoint(profile.architectures)
    return profile.mode != Mode.IMAGE_GENERATION and not silent


REFUSALS = frozenset({400, 401, 403, 404, 405, 422})
"""HTTP statuses with which the engine says that it will not answer such a request."""


def is_final(probe: Probe, status: int) -> bool:
    """Whether a bad answer will not become a good one, however often the engine is asked."""
    return not probe.patient and (status == 200 or status in REFUSALS)


def judge(probe: Probe, status: int, answer: Any) -> tuple[str, str]:
    """Hold an answer against what the probe expects.

    Returns:
        What is wrong (empty when the answer is good), and what to keep of it.
    """
    if not status:
        return shorten(answer), ""
    if status != 200:
        return f"HTTP {status}: {shorten(answer)}", ""
    if isinstance(answer, Unreadable) and probe.expects != "status":
        return str(answer), ""
    return JUDGES[probe.expects](probe, answer)


def completion_tokens(answer: Any) -> int | None:
    """How many tokens an answer says that it has; None = it does not say.

    Raises:
        ValueError: What it says is no number of tokens.
    """
    usage = answer.get("usage") if isinstance(answer, dict) else None
    count = usage.get("completion_tokens") if isinstance(usage, dict) else None
    if count is None or (type(count) is int and 0 <= count <= MOST_TOKENS):
        return count
    raise ValueError(f"{shorten(repr(count))} is no number of tokens")


def shorten(answer: Any) -> str:
    """An answer as a message quotes it: not long, and nothing in it that a terminal obeys."""
    text = printable(str(answer)[: SHOWN + 1])
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def _request(spec: ModelSpec, profile: ModelProfile) -> Probe:
    prompt, name = spec.readiness.probe.prompt, spec.name
    pooling: dict[Mode, tuple[str, dict[str, Any], str]] = {
        Mode.EMBEDDING: ("/v1/embeddings", {"input": prompt}, "vector"),
        Mode.RERANKING: ("/rerank", {"query": prompt, "documents": [prompt, "no"]}, "scores"),
        Mode.CLASSIFICATION: ("/classify", {"input": [prompt]}, "labels"),
    }
    path, body, expects = pooling.get(profile.mode) or _generation(
        prompt, profile.has_chat_template
    )
    return Probe(
        phase=Phase.ANSWERED,
        deadline="warm_up_seconds",
        method="POST",
        path=path,
        body={"model": name, **body},
        expects=expects,
        name=name,
        patient=False,
    )


def _generation(prompt: str, chat: bool) -> tuple[str, dict[str, Any], str]:
    limits = {"max_tokens": 1, "temperature": 0, "stream": False}
    if chat:
        messages = [{"role": "user", "content": prompt}]
        return "/v1/chat/completions", {"messages": messages, **limits}, "text"
    return "/v1/completions", {"prompt": prompt, **limits}, "text"


def _judge_running(_probe: Probe, answer: Any) -> tuple[str, str]:
    return ("", answer["detail"]) if answer["ready"] else (answer["detail"], "")


def _judge_status(_probe: Probe, _answer: Any) -> tuple[str, str]:
    return "", "HTTP 200"


def _judge_listed(probe: Probe, answer: Any) -> tuple[str, str]:
    names = [str(entry.get("id")) for entry in _items(answer, "data")]
    if probe.name in names:
        return "", f"listed as {probe.name}"
    others = shorten(", ".join(names[:MOST_NAMES]))
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return f"'{probe.name}' is not listed, but {others or 'nothing'}{more}", ""


def _judge_text(_probe: Probe, answer: Any) -> tuple[str, str]:
    choice = next(iter(_items(answer, "choices")), {})
    message = choice.get("message")
    text = message.get("content") if isinstance(message, dict) else choice.get("text")
    finish = choice.get("finish_reason")
    if finish not in ("stop", "length"):
        return f"nothing was generated (finish reason {shorten(repr(finish))})", ""
    try:
        tokens = completion_tokens(answer)
    except ValueError as error:
        return str(error), ""
    if tokens == 0 or (tokens is None and not text):
        return "no token was generated", ""
    return "", f"{shorten(repr(text))} ({finish})"


def _judge_vector(_probe: Probe, answer: Any) -> tuple[str, str]:
    vector = next(iter(_items(answer, "data")), {}).get("embedding")
    if not isinstance(vector, list) or not vector or not _all_finite(vector):
        return "the embedding is empty or not finite", ""
    return "", f"a vector of {len(vector)}"


def _judge_scores(_probe: Probe, answer: Any) -> tuple[str, str]:
    scores = [entry.get("relevance_score") for entry in _items(answer, "results")]
    if len(scores) < 2 or not _all_finite(scores):
        return "the scores are missing or not finite", ""
    return "", f"{len(scores)} scores"


def _judge_labels(_probe: Probe, answer: Any) -> tuple[str, str]:
    shares = next(iter(_items(answer, "data")), {}).get("probs")
    if not isinstance(shares, list) or not shares or not _all_finite(shares):
        return "the labels' probabilities are missing or not finite", ""
    return "", f"probabilities of {len(shares)} labels"


def _all_finite(numbers: list[Any]) -> bool:
    return all(isinstance(x, int | float) and math.isfinite(x) for x in numbers)


JUDGES = {
    "running": _judge_running,
    "status": _judge_status,
    "listed": _judge_listed,
    "text": _judge_text,
    "vector": _judge_vector,
    "scores": _judge_scores,
    "labels": _judge_labels,
}


def _items(answer: Any, key: str) -> list[dict[str, Any]]:
    entries = answer.get(key) if isinstance(answer, dict) else None
    if not isinstance(entries, list):
        return []
    return [entry for entry in entries if isinstance(entry, dict)]
