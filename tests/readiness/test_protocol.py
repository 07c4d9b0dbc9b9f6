from __future__ import annotations

import base64
import io
import math
import wave
from typing import Any

import pytest

from moorage.common.units import MIB
from moorage.readiness.answers import JUDGES, Unreadable, is_final, judge
from moorage.readiness.protocol import Phase, Probe, application_probes, readiness_probes
from moorage.spec import Deadlines, Mode
from tests.builders import a_profile, a_spec

ON_A_HOST = [phase for phase in Phase if phase != Phase.DEPLOYED]


def probes_for(
    mode: Mode = Mode.COMPLETION, *, lists: bool = True, chat: bool = True, **probe: Any
) -> tuple[Probe, ...]:
    spec = a_spec(readiness={"probe": probe})
    return readiness_probes(spec, a_profile(mode=mode, has_chat_template=chat), lists_models=lists)


def test_a_model_is_proven_phase_by_phase() -> None:
    probes = probes_for()
    assert [probe.phase for probe in probes] == ON_A_HOST
    assert [probe.path for probe in probes] == [
        "",
        "/health",
        "/v1/models",
        "/v1/chat/completions",
    ]
    assert [probe.patient for probe in probes] == [True, True, True, False]
    assert all(probe.expects in JUDGES for probe in probes)


def test_every_phase_has_a_deadline_of_the_spec() -> None:
    deadlines = [probe.deadline for probe in probes_for()]
    assert deadlines == ["load_seconds"] * 2 + ["warm_up_seconds"] * 2
    assert set(deadlines) <= set(Deadlines.model_fields)


def test_what_the_spec_or_the_engine_leaves_out_is_not_asked() -> None:
    assert [probe.phase for probe in probes_for(lists=False, request=False)] == [
        Phase.LISTENING,
        Phase.HEALTHY,
    ]


def test_a_cluster_says_itself_when_its_application_runs() -> None:
    spec = a_spec(placement={"cluster": "ray"})
    probes = application_probes(spec, a_profile(), lists_models=True)
    assert [(probe.phase, probe.deadline) for probe in probes] == [
        (Phase.DEPLOYED, "on_cluster_seconds"),
        (Phase.LISTENING, "warm_up_seconds"),
        (Phase.LISTED, "warm_up_seconds"),
        (Phase.ANSWERED, "warm_up_seconds"),
    ]
    assert Deadlines().on_cluster_seconds == 3600 + 900


def test_an_application_is_asked_for_its_health_where_the_spec_says_how() -> None:
    spec = a_spec(placement={"cluster": "ray"}, readiness={"probe": {"path": "/ping"}})
    probes = application_probes(spec, a_profile(), lists_models=False)
    assert [probe.path for probe in probes] == ["", "", "/ping", "/v1/chat/completions"]


def test_what_a_cluster_says_is_judged() -> None:
    probe = Probe(phase=Phase.DEPLOYED, deadline="on_cluster_seconds", expects="running")
    waits, runs = "the application is DEPLOYING", "the application is RUNNING"
    assert judge(probe, 200, {"ready": False, "detail": waits}) == (waits, "")
    assert judge(probe, 200, {"ready": True, "detail": runs}) == ("", runs)


@pytest.mark.parametrize(
    ("architecture", "expects"),
    [
        ("WhisperForConditionalGeneration", "transcript"),
        ("CohereAsrForConditionalGeneration", "transcript"),
        ("Qwen2AudioForConditionalGeneration", "text"),
    ],
)
def test_what_only_transcribes_is_not_asked_for_text(architecture: str, expects: str) -> None:
    profile = a_profile(architectures=(architecture,), mode=Mode.COMPLETION)
    assert readiness_probes(a_spec(), profile, lists_models=True)[-1].expects == expects


def test_a_second_of_sound_is_sent_to_what_transcribes() -> None:
    with wave.open(io.BytesIO(probes_for(Mode.TRANSCRIPTION)[-1].sound)) as sound:
        assert sound.getnframes() == sound.getframerate() == 16_000
        assert (sound.getnchannels(), sound.getsampwidth()) == (1, 2)
        assert len(set(sound.readframes(16_000))) > 100
    assert not any(probe.sound for mode in Mode for probe in probes_for(mode)[:-1])


def test_only_a_picture_may_be_large() -> None:
    sizes = {mode: probes_for(mode)[-1].most_bytes for mode in Mode}
    assert sizes.pop(Mode.IMAGE_GENERATION) == 16 * MIB
    assert set(sizes.values()) == {4 * MIB}


def test_the_health_path_is_the_one_of_the_spec() -> None:
    assert probes_for(path="/ping")[1].path == "/ping"


@pytest.mark.parametrize(
    ("mode", "chat", "path", "body", "expects"),
    [
        (
            Mode.COMPLETION,
            True,
            "/v1/chat/completions",
            {"messages": [{"role": "user", "content": "Hi?"}], "max_tokens": 1},
            "text",
        ),
        (Mode.COMPLETION, False, "/v1/completions", {"prompt": "Hi?", "max_tokens": 1}, "text"),
        (Mode.EMBEDDING, True, "/v1/embeddings", {"input": "Hi?"}, "vector"),
        (Mode.RERANKING, True, "/rerank", {"query": "Hi?", "documents": ["Hi?", "no"]}, "scores"),
        (Mode.CLASSIFICATION, True, "/classify", {"input": ["Hi?"]}, "labels"),
        (
            Mode.TRANSCRIPTION,
            False,
            "/v1/audio/transcriptions",
            {"language": "en", "response_format": "json"},
            "transcript",
        ),
        (
            Mode.IMAGE_GENERATION,
            False,
            "/v1/images/generations",
            {"prompt": "Hi?", "n": 1, "size": "256x256", "response_format": "b64_json"},
            "picture",
        ),
    ],
)
def test_the_real_request_suits_the_mode(
    mode: Mode, chat: bool, path: str, body: dict[str, Any], expects: str
) -> None:
    probe = probes_for(mode, chat=chat, prompt="Hi?")[-1]
    assert (probe.method, probe.path, probe.expects) == ("POST", path, expects)
    assert probe.body
    assert probe.body.items() >= {"model": "tiny", **body}.items()


LISTED = {"data": [{"id": "other"}, {"id": "tiny"}]}
CHAT = {"choices": [{"message": {"content": "Hello"}, "finish_reason": "length"}]}
TEXT = {"choices": [{"text": "Hello", "finish_reason": "stop"}]}


PNG, JPEG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"\xff\xd8\xff\xe0\0\x10JFIF"
WEBP, WAVE = (b"RIFF\x1a\0\0\0" + kind for kind in (b"WEBPVP8 ", b"WAVEfmt "))


def picture(content: bytes, field: str = "b64_json", prefix: str = "") -> dict[str, Any]:
    return {"data": [{field: prefix + base64.b64encode(content).decode()}]}


def choice(finish: str | None, text: str | None, **rest: Any) -> dict[str, Any]:
    return {"choices": [{"text": text, "finish_reason": finish}], **rest}


@pytest.mark.parametrize(
    ("kind", "answer", "kept"),
    [
        ("status", "", "HTTP 200"),
        ("listed", LISTED, "listed as tiny"),
        ("text", CHAT, "'Hello' (length)"),
        ("text", TEXT, "'Hello' (stop)"),
        ("text", choice("length", "", usage={"completion_tokens": 1}), "'' (length)"),
        ("text", choice("eos", "Hi", usage={"completion_tokens": 1}), "'Hi' (eos)"),
        ("text", choice(None, "Hi", usage={"completion_tokens": 1}), "'Hi' (None)"),
        ("vector", {"data": [{"embedding": [0.5, -1, 2]}]}, "a vector of 3"),
        ("scores", {"results": [{"relevance_score": 1}, {"relevance_score": 0.1}]}, "2 scores"),
        ("scores", [{"score": 1, "index": 0}, {"score": 0.1, "index": 1}], "2 scores"),
        ("labels", {"data": [{"label": "a", "probs": [0.1, 0.9]}]}, "probabilities of 2 labels"),
        ("transcript", {"text": " Hello", "usage": {"seconds": 1}}, "' Hello' (transcript)"),
        ("transcript", {"text": ""}, "'' (transcript)"),
        ("picture", picture(PNG), "a PNG of 16 B"),
        ("picture", picture(JPEG), "a JPEG of 10 B"),
        ("picture", picture(WEBP, "url", "data:image/webp;base64,"), "a WebP of 16 B"),
    ],
)
def test_a_good_answer_is_kept(kind: str, answer: Any, kept: str) -> None:
    assert judge(a_probe(kind), 200, answer) == ("", kept)


@pytest.mark.parametrize(
    ("kind", "answer", "wrong"),
    [
        ("listed", {"data": [{"id": "other"}]}, "'tiny' is not listed, but other"),
        ("listed", {"data": []}, "'tiny' is not listed, but nothing"),
        ("listed", "<html>", "'tiny' is not listed, but nothing"),
        ("text", choice("error", "Hi", usage={"completion_tokens": 1}), "reason 'error'"),
        ("text", choice("abort", ""), "nothing was generated (finish reason 'abort')"),
        ("text", choice(None, "Hello"), "nothing was generated (finish reason None)"),
        ("text", choice("length", ""), "no token was generated"),
        ("text", choice("stop", "x", usage={"completion_tokens": 0}), "no token was generated"),
        ("text", {"choices": []}, "nothing was generated"),
        ("text", {"error": {"message": "still loading"}}, "still loading"),
        ("text", {"choices": [{"message": "Hello", "finish_reason": "stop"}]}, "no token"),
        ("text", [1], "nothing was generated"),
        ("text", None, "nothing was generated"),
        ("vector", {"data": []}, "the embedding is empty or not finite"),
        ("vector", {"data": [{"embedding": []}]}, "the embedding is empty or not finite"),
        ("vector", {"data": [{"embedding": [0.1, math.nan]}]}, "not finite"),
        ("vector", {"data": [{"embedding": [0.1, None]}]}, "not finite"),
        ("vector", {"data": [{"embedding": "AAAA"}]}, "not finite"),
        ("vector", {"data": [{"embedding": 5}]}, "not finite"),
        ("scores", {"results": [{"relevance_score": 1}]}, "the scores are missing"),
        ("scores", {"results": [{}, {}]}, "the scores are missing or not finite"),
        ("scores", {"results": [{"relevance_score": math.inf}] * 2}, "not finite"),
        ("scores", {}, "the scores are missing"),
        ("scores", [{"score": math.nan}] * 2, "not finite"),
        ("labels", {"data": []}, "the labels' probabilities are missing"),
        ("labels", {"data": [{"probs": [math.nan]}]}, "not finite"),
        ("transcript", {"text": None}, "no transcript ({'text': None})"),
        ("transcript", "Hello", "no transcript (Hello)"),
        ("picture", {"data": []}, "no picture ({'data': []})"),
        ("picture", {"data": [{"b64_json": 5}]}, "no picture"),
        ("picture", picture(WAVE), "no PNG, JPEG, WebP begins like that (UklGRhoAAA"),
        ("picture", picture(b""), "no picture"),
        ("picture", picture(PNG, prefix="\n"), "no picture in base64"),
        ("picture", {"data": [{"url": "http://10.0.0.1/a.png"}]}, "(http://10.0.0.1/a.png)"),
        ("picture", {"data": [{"b64_json": "\u00e4"}]}, "no picture in base64"),
    ],
)
def test_an_answer_that_proves_nothing_is_told(kind: str, answer: Any, wrong: str) -> None:
    found, kept = judge(a_probe(kind), 200, answer)
    assert wrong in found
    assert kept == ""


@pytest.mark.parametrize("kind", JUDGES)
@pytest.mark.parametrize("status", [0, 404, 500, 503])
def test_only_status_200_can_be_good(kind: str, status: int) -> None:
    wrong, kept = judge(a_probe(kind), status, "Valid aliases: tiny.")
    prefix = f"HTTP {status}: " if status else ""
    assert (wrong, kept) == (f"{prefix}Valid aliases: tiny.", "")


@pytest.mark.parametrize(
    ("patient", "status", "final"),
    [
        (False, 200, True),
        (False, 404, True),
        (False, 401, True),
        (False, 429, False),
        (False, 503, False),
        (False, 0, False),
        (True, 200, False),
        (True, 404, False),
    ],
)
def test_a_real_request_that_is_refused_is_not_repeated(
    patient: bool, status: int, final: bool
) -> None:
    probe = a_probe("text").model_copy(update={"patient": patient})
    assert is_final(probe, status) is final


def test_a_long_answer_is_shortened() -> None:
    wrong, _ = judge(a_probe("status"), 500, "x" * 1000)
    assert len(wrong) == len("HTTP 500: ") + 200


ODD_ITEMS: list[Any] = [5, "x", [5], [{}], {}]
ODD_COUNTS: list[Any] = ["12", -1, 10**100, 1.5, True, [], {}]
GENERATED = {"choices": [{"text": "a", "finish_reason": "stop"}]}

LIES: list[Any] = [
    *(None, [], "text", 5),
    *({key: value} for key in ("data", "choices", "results") for value in ODD_ITEMS),
    {"choices": [{"message": 5, "finish_reason": [["stop"]]}]},
    {**GENERATED, "usage": 5},
    *({**GENERATED, "usage": {"completion_tokens": count}} for count in ODD_COUNTS),
    {"data": [{"embedding": ["x"]}, 5]},
    Unreadable(why="is nested more than 64 deep"),
]


@pytest.mark.parametrize("kind", sorted(JUDGES.keys() - {"status", "running"}))
@pytest.mark.parametrize("answer", LIES, ids=repr)
def test_an_answer_that_lies_is_told_and_is_no_traceback(kind: str, answer: object) -> None:
    probe = a_probe(kind)
    wrong, kept = judge(probe, 200, answer)
    usage = answer.get("usage") if isinstance(answer, dict) else None
    assert wrong if usage != 5 or kind != "text" else kept


def test_names_without_end_are_not_all_repeated() -> None:
    answer = {"data": [{"id": f"\x1b[2Jname-{number}" * 50} for number in range(50_000)]}
    wrong, _ = judge(a_probe("listed"), 200, answer)
    assert len(wrong) < 300
    assert wrong.isprintable()
    assert wrong.endswith(" and 49,990 more")


def test_what_a_model_says_is_kept_short_and_harmless() -> None:
    choice = {"text": "\x1b[2J\u202e" + "x" * 10**6, "finish_reason": "stop"}
    _, kept = judge(a_probe("text"), 200, {"choices": [choice]})
    assert len(kept) < 300
    assert kept.isprintable()


def a_probe(kind: str) -> Probe:
    return Probe(phase=Phase.ANSWERED, deadline="warm_up_seconds", expects=kind, name="tiny")
