"""The readiness protocol: port, health, listed name, one real answer; each in its phase.

An engine that calls itself healthy is not proven to serve; one that generated a token is.
"""

import json
from enum import StrEnum
from typing import Any

from moorage.common.units import MIB
from moorage.common.values import Value
from moorage.models.profile import TRANSCRIBERS, ModelProfile
from moorage.readiness.media import tone
from moorage.spec import Mode, ModelSpec, ProbeSpec

MOST_BYTES = 4 * MIB
"""Of an answer, unless a caller says otherwise: a long completion has some hundred KiB."""

MOST_PICTURE = 16 * MIB
"""Of an answer with a picture: in base64, and maybe larger than was asked for."""


class Phase(StrEnum):
    """Phases of a start, in order."""

    DEPLOYED = "deployed"
    LISTENING = "listening"
    HEALTHY = "healthy"
    LISTED = "listed"
    ANSWERED = "answered"


class Probe(Value):
    """One request to the engine; it proves a phase when the answer is good.

    Attributes:
        deadline: Which deadline of the spec applies: `load_seconds`, `warm_up_seconds`, or
            `on_cluster_seconds`.
        method: HTTP method; empty = only a TCP connection.
        expects: Kind of answer: `running` (of the runtime, not the engine), `status`, `listed`,
            `text`, `generated` (by Triton), `vector`, `scores`, `labels`, `transcript`, `picture`.
        patient: Whether a bad answer may still become a good one while the engine starts.
        sound: A WAV file; with it the request is a form, and `body` its other fields.
        most_bytes: How large the answer may be.
    """

    phase: Phase
    deadline: str
    method: str = ""
    path: str = ""
    body: dict[str, Any] | None = None
    expects: str = "status"
    name: str = ""
    patient: bool = True
    sound: bytes = b""
    most_bytes: int = MOST_BYTES


class ProbeResult(Value):
    """How a phase was passed, in seconds from the start of the engine, and what was answered."""

    phase: Phase
    seconds: float
    attempts: int
    detail: str = ""


class Readiness(Value):
    """What step `verify` makes: the proof for every replica.

    `first_token_seconds` is the duration of the request that was answered; 0 = no request.
    """

    workload: str
    endpoint: str
    probes: tuple[ProbeResult, ...]
    first_token_seconds: float = 0.0


def readiness_probes(
    spec: ModelSpec, profile: ModelProfile, *, lists_models: bool
) -> tuple[Probe, ...]:
    """The probes for a model, in order."""
    path = spec.readiness.probe.path
    return (
        Probe(phase=Phase.LISTENING, deadline="load_seconds"),
        Probe(phase=Phase.HEALTHY, deadline="load_seconds", method="GET", path=path),
        *_answers(spec, profile, lists_models=lists_models),
    )


def application_probes(
    spec: ModelSpec, profile: ModelProfile, *, lists_models: bool
) -> tuple[Probe, ...]:
    """The probes for an application of Ray Serve.

    Ray reports when the application runs; its proxy accepts requests long before.
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
    if spec.readiness.probe.request:
        probes.append(_request(spec, profile))
    return probes


def _request(spec: ModelSpec, profile: ModelProfile) -> Probe:
    mode, name = _asked_mode(profile), spec.name
    path, body, expects = _proof(mode, spec.readiness.probe.prompt, chat=profile.has_chat_template)
    return Probe(
        phase=Phase.ANSWERED,
        deadline="warm_up_seconds",
        method="POST",
        path=path,
        body={"model": name, **body},
        expects=expects,
        name=name,
        patient=False,
        sound=tone() if mode == Mode.TRANSCRIPTION else b"",
        most_bytes=MOST_PICTURE if mode == Mode.IMAGE_GENERATION else MOST_BYTES,
    )


def _asked_mode(profile: ModelProfile) -> Mode:
    """The mode; models that only transcribe have no path for text, whatever is stated."""
    if profile.mode == Mode.COMPLETION and TRANSCRIBERS.intersection(profile.architectures):
        return Mode.TRANSCRIPTION
    return profile.mode


def _proof(mode: Mode, prompt: str, *, chat: bool) -> tuple[str, dict[str, Any], str]:
    """Path and body of the request that proves a mode, and the kind of its answer."""
    sound = {"language": "en", "response_format": "json"}
    picture = {"prompt": prompt, "n": 1, "size": "256x256", "response_format": "b64_json"}
    requests: dict[Mode, tuple[str, dict[str, Any], str]] = {
        Mode.EMBEDDING: ("/v1/embeddings", {"input": prompt}, "vector"),
        Mode.RERANKING: ("/rerank", {"query": prompt, "documents": [prompt, "no"]}, "scores"),
        Mode.CLASSIFICATION: ("/classify", {"input": [prompt]}, "labels"),
        Mode.TRANSCRIPTION: ("/v1/audio/transcriptions", sound, "transcript"),
        Mode.IMAGE_GENERATION: ("/v1/images/generations", picture, "picture"),
    }
    return requests.get(mode) or (*generation(prompt, [], 1, chat=chat), "text")


def triton_request(model: str, prompt: str, sampling: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The path and the body of a request to a model on Triton, without the prompt in its answer."""
    body = {
        "text_input": prompt,
        "stream": False,
        "exclude_input_in_output": True,
        "sampling_parameters": json.dumps(sampling),
    }
    return f"/v2/models/{model}/generate", body


def generation(
    prompt: str, messages: list[dict[str, Any]], max_tokens: int, *, chat: bool
) -> tuple[str, dict[str, Any]]:
    """The HTTP path and the body of a request for text; without messages, of the prompt."""
    limits = {"max_tokens": max_tokens, "temperature": 0, "stream": False}
    if chat:
        conversation = messages or [{"role": "user", "content": prompt}]
        return "/v1/chat/completions", {"messages": conversation, **limits}
    return "/v1/completions", {"prompt": prompt, **limits}
