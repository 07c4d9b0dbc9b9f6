"""The readiness protocol: port, health, listed name, one real answer; a phase for each.

A healthy status does not prove that an engine serves; a generated token does.
"""

import json
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from moorage.common.units import MIB
from moorage.common.values import Value
from moorage.models.mode import TRANSCRIBERS
from moorage.models.profile import ModelProfile
from moorage.readiness.media import tone
from moorage.spec import Mode, ModelSpec, ProbeSpec

MOST_BYTES = 4 * MIB
"""Default limit of an answer's bytes: a long completion has some hundred KiB."""

MOST_PICTURE = 16 * MIB
"""Limit of an answer with an image: base64, and possibly larger than requested."""


class Phase(StrEnum):
    """Phases of a start, in order."""

    DEPLOYED = "deployed"
    LISTENING = "listening"
    HEALTHY = "healthy"
    LISTED = "listed"
    ANSWERED = "answered"


class Probe(Value):
    """One request to the engine; a good answer proves its phase.

    Attributes:
        deadline: Which deadline of the spec applies: `load_seconds`, `warm_up_seconds`, or
            `on_cluster_seconds`.
        method: HTTP method; empty = only a TCP connection.
        expects: Kind of answer: `running` (from the runtime, not the engine), `status`, `listed`,
            `text`, `generated` (by Triton), `vector`, `scores`, `labels`, `transcript`, `picture`.
        patient: Whether a bad answer may still become a good one while the engine starts.
        sound: A WAV file; with one, the request is a form, and `body` has its other fields.
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
    """A passed phase: seconds since the start of the engine, attempts, and an excerpt."""

    phase: Phase
    seconds: float
    attempts: int
    detail: str = ""


class Readiness(Value):
    """The result of step `verify`: the proof for one replica.

    `first_token_seconds` is the duration of the answered request; 0 = no request was sent.
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
        # Ray Serve LLM has no health path; a path in the spec belongs to a custom application.
        *([own] if path != ProbeSpec().path else []),
        *_answers(spec, profile, lists_models=lists_models),
    )


def _answers(spec: ModelSpec, profile: ModelProfile, *, lists_models: bool) -> Iterator[Probe]:
    """Probes for the listed name and for one real answer."""
    if lists_models:
        yield Probe(
            phase=Phase.LISTED,
            deadline="warm_up_seconds",
            method="GET",
            path="/v1/models",
            expects="listed",
            name=spec.name,
        )
    if spec.readiness.probe.request:
        yield _request(spec, profile)


def _request(spec: ModelSpec, profile: ModelProfile) -> Probe:
    mode, name = profile.mode, spec.name
    # Models that only transcribe cannot answer text, whatever the spec says.
    if mode == Mode.COMPLETION and TRANSCRIBERS.intersection(profile.architectures):
        mode = Mode.TRANSCRIPTION
    path, body, expects = _proof(mode, spec.readiness.probe.prompt, chat=profile.has_chat_template)
    return question(
        path,
        {"model": name, **body},
        name,
        expects=expects,
        sound=tone() if mode == Mode.TRANSCRIPTION else b"",
        most_bytes=MOST_PICTURE if mode == Mode.IMAGE_GENERATION else MOST_BYTES,
    )


def question(path: str, body: dict[str, Any], name: str, **more: Any) -> Probe:
    """A request that the engine answers once, well or badly."""
    own = {"phase": Phase.ANSWERED, "deadline": "warm_up_seconds", "method": "POST"}
    return Probe(**own, path=path, body=body, name=name, patient=False, **more)


def _proof(mode: Mode, prompt: str, *, chat: bool) -> tuple[str, dict[str, Any], str]:
    """Path and body of the request that proves a mode, and the expected kind of answer."""
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
    """Path and body of a request to Triton whose answer does not repeat the prompt."""
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
    """HTTP path and body of a request for text, from the messages or else the prompt."""
    limits = {"max_tokens": max_tokens, "temperature": 0, "stream": False}
    if chat:
        conversation = messages or [{"role": "user", "content": prompt}]
        return "/v1/chat/completions", {"messages": conversation, **limits}
    return "/v1/completions", {"prompt": prompt, **limits}
