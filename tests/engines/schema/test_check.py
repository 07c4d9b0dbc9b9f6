from __future__ import annotations

from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.engines.schema.check import (
    ArgumentCheck,
    check_arguments,
    check_likely,
    likely_versions,
)
from moorage.spec import EngineSpec
from tests.engines.schema.shipped import RULES, assert_mistake, judged, schema_of, shipped

LENIENT = (
    "--max_model_len 4096",
    "--max-model-len=32k",
    "--max-model-len 32K",
    "--max-model-len auto",
    "--max-model-len -1",
    "--max-num-batched-tokens 25.6k",
    "--kv-cache-memory 10G",
    "--no-enable-prefix-caching",
    "--no_enable_prefix_caching",
    "-tp 2 -pp=2 -q awq",
    "-O3",
    "-O 3",
    "-O=3",
    "--compilation-config.mode 3",
    "--compilation_config.cudagraph_capture_sizes [1,2,4]",
    "--compilation-conf.mode=3",
    "-cc.mode 3",
    '--compilation-config {"mode": 3, "cudagraph_capture_sizes": [1, 2]}',
    '--aux-output-config={"max_bytes": 80m}',
    "--limit-mm-per-prompt.image 2",
    "--override-generation-config.stop+ a,b",
    '--hf-overrides {"rope_theta": 1e6}',
    "--cudagraph-capture-sizes 1 2 4 8",
    "--middleware a.B --middleware c.D",
    "--seed -1",
    "--safetensors-load-strategy None",
    "--moe-backend DEEP-GEMM",
    "--max-lora-rank 64",
    "--lora-modules poet=/adapters/poet",
    '--chat-template "{% for message in messages %}{{ message }}{% endfor %}"',
)

MISTAKES = (
    ("--max-modle-len 4096", "--max-modle-len", "does not know it", "`--max-model-len`"),
    ("--enforce-eagr", "--enforce-eagr", "does not know it", "`--enforce-eager`"),
    ("--max-model-len 1.5K", "--max-model-len", "only whole numbers go with K", "`1.5k`"),
    ("--max-model-len long", "--max-model-len", "'long' is not a whole number", ""),
    ("-tp two", "--tensor-parallel-size", "'two' is not a whole number", ""),
    ("-tp", "--tensor-parallel-size", "its value is missing", ""),
    ("--cudagraph-capture-sizes", "--cudagraph-capture-sizes", "its value is missing", ""),
    ("--compilation-config.mode", "--compilation-config.mode", "its value is missing", ""),
    ("--gpu-memory-utilization 90%", "--gpu-memory-utilization", "'90%' is not a number", ""),
    ("--kv-cache-dtype fp9", "--kv-cache-dtype", "'fp9' is not one of auto", "`fp8`"),
    ("--max-lora-rank 24", "--max-lora-rank", "'24' is not one of 1, 8, 16", ""),
    ("--speculative-config {'a':1}", "--speculative-config", "is not JSON", ""),
    ("--eplb-config [1]", "--eplb-config", "'[1]' is not a JSON object", ""),
    ("--eplb-config.windw_size 3", "--eplb-config", "'windw_size' is no key", "`window_size`"),
    ("--hf-overrides {x}", "--hf-overrides", "is not JSON", ""),
    ("--lora-modules poet", "--lora-modules", "'poet' is not JSON", ""),
    ("--lora-modules {}", "--lora-modules", "neither name=path nor", ""),
    ("--enable-lora=true", "--enable-lora", "takes no value", "`--no-enable-lora`"),
    ("--max-l 4", "--max-l", "short for 5 arguments", "`--max-logprobs`"),
)

GONE = (
    ("--swap-space 4", "gone since 0.18.0", "Leave it out."),
    ("--guided-decoding-backend xgrammar", "gone since 0.12.0", "--structured-outputs-config"),
    ("--task embed", "gone since 0.13.0", "`mode` of the spec"),
    ("--num-scheduler-steps 8", "gone since 0.10.1", "Leave it out."),
    ("--max-seq-len-to-capture 8192", "gone since 0.11.0", "--max-cudagraph-capture-size"),
    ("--cuda-graph-sizes 4", "gone since 0.13.0", "Use `--cudagraph-capture-sizes`."),
    ("--disable-log-requests", "gone since 0.17.0", "--enable-log-requests"),
    ("--max-num-partial-prefills 2", "gone since 0.27.0", "Leave it out."),
    ("--speculative-model /draft", "it is gone since 0.8.3", "`speculative` of the spec"),
    ("--tokenizer-pool-size 2", "it is gone since 0.10.0", "Leave it out."),
)

REFUSED = (
    ("--api-key abc", "secrets: {VLLM_API_KEY: NAME}"),
    ("--hf-token=abc", "secrets: {HF_TOKEN: NAME}"),
    ("--model org/other", "source"),
    ("--port 8000", "port"),
    ("--host 0.0.0.0", "hosts[].bind"),
    ("--served_model_name other", "name"),
    ("--uds /tmp/socket", "port"),
    ("--headless", "placement"),
    ("--node-rank 1", "placement"),
    ("--data-parallel-rank=0", "placement"),
    ("-r 1", "placement"),
    ("--data-parallel-external-lb", "placement"),
    ("--ssl-keyfile /key", "hosts[].bind"),
    ("--config /vllm.yaml", "engine.args"),
)

NOTED = (
    ("--max-model-len 4096", "--max-model-len wins over `context`"),
    ("-tp 2", "-tp wins over `placement.accelerators`"),
    ("--gpu-memory-util 0.5", "--gpu-memory-utilization wins over `placement.policy`"),
    ("--device-memory-utilization 0.5", "--device-memory-utilization wins over"),
    ("--spec-method ngram", "--spec-method wins over `speculative`"),
    ("--disable-cascade-attn", "--disable-cascade-attn is deprecated; 0.33.0 drops it"),
    ("--log-config-file /x", "use --logging-config.pylogging_config_file"),
)


@pytest.mark.parametrize("entry", LENIENT)
def test_every_writing_that_vllm_takes_is_taken(entry: str) -> None:
    assert judged(entry).problems == ()


@pytest.mark.parametrize(("entry", "option", "message", "suggestion"), MISTAKES)
def test_a_mistake_is_named_with_what_was_meant(
    entry: str, option: str, message: str, suggestion: str
) -> None:
    assert_mistake(judged(entry), option, message, suggestion)


def test_all_mistakes_are_told_at_once() -> None:
    problems = judged("--no-such-thing 1", "--seed one", "--swap-space 4", "--api-key x").problems
    assert [problem.option for problem in problems] == [
        "--api-key",
        "--seed",
        "--no-such-thing",
        "--swap-space",
    ]


def test_a_word_without_an_option_is_refused() -> None:
    (problem,) = judged("lonely", "--seed 1").problems
    assert (problem.option, problem.message) == ("lonely", "this word belongs to no option")


@pytest.mark.parametrize(("entry", "message", "suggestion"), GONE)
def test_a_dropped_argument_is_told_with_its_version_and_successor(
    entry: str, message: str, suggestion: str
) -> None:
    (problem,) = judged(entry).problems
    assert problem.message.endswith(message)
    assert suggestion in problem.suggestion


def test_an_argument_of_a_newer_version_names_that_version() -> None:
    (problem,) = judged("--shutdown-timeout 20", version="0.17.0").problems
    assert problem.message == "vLLM 0.17.0 does not know it yet; it came with 0.18.0"
    assert "`engine.version` to 0.18.0 or newer" in problem.suggestion


def test_the_same_words_are_good_for_one_version_and_bad_for_another() -> None:
    assert judged("--swap-space 4", version="0.17.1").problems == ()
    assert judged("--swap-space 4", version="v0.18.1").problems
    assert judged("-O.level 3", version="0.10.2").problems == ()
    assert judged("-O.level 3").problems


@pytest.mark.parametrize(("entry", "field"), REFUSED)
def test_what_would_break_a_promise_is_refused_with_the_field_to_use(
    entry: str, field: str
) -> None:
    (problem,) = judged(entry).problems
    assert problem.suggestion == f"Use `{field}` instead."
    assert "abc" not in str(problem)


@pytest.mark.parametrize(("entry", "note"), NOTED)
def test_what_a_field_says_too_is_taken_and_noted(entry: str, note: str) -> None:
    judgement = judged(entry)
    assert judgement.problems == ()
    assert note in " ".join(judgement.notes)


def test_what_no_field_knows_is_taken_without_a_word() -> None:
    assert judged("--seed 7", "--enable-prefix-caching").notes == ()


def test_what_stands_in_for_an_argument_is_one_of_a_version() -> None:
    schemas = shipped()
    ends = [one.deprecated for schema in schemas for one in schema.arguments if one.deprecated]
    named = {end.instead.partition(".")[0] for end in ends} - {""}
    assert named
    assert named <= {name for schema in schemas for name in schema.options}


DEFAULT = "0.32.0"
TYPO = {"args": ["--max-modle-len 4096"]}
TRITON = "nvcr.io/nvidia/tritonserver"


@pytest.mark.parametrize(
    ("wish", "installed", "versions"),
    [
        ({}, None, (DEFAULT,)),
        ({}, "0.31.0", (DEFAULT, "0.31.0")),
        ({"runtime": "docker"}, "0.31.0", (DEFAULT,)),
        ({"runtime": "process"}, "0.31.0", ("0.31.0",)),
        ({"runtime": "process"}, None, ()),
        ({"image": "acme/vllm:7"}, "0.31.0", ()),
        ({"image": "vllm/vllm-openai:v0.31.0"}, None, ("0.31.0",)),
        ({"image": "own.acme/vllm/vllm-openai:v0.31.0"}, None, ()),
        ({"image": f"{TRITON}:26.07-vllm-python-py3", "name": "triton"}, None, ("26.07",)),
        ({"image": "acme/vllm:7", "version": "0.30.0"}, None, ("0.30.0",)),
        ({"version": "0.30.0"}, "0.31.0", ("0.30.0",)),
    ],
)
def test_which_versions_may_run_is_read_from_the_spec(
    wish: dict[str, Any], installed: str | None, versions: tuple[str, ...]
) -> None:
    assert likely_versions(EngineSpec(**wish), DEFAULT, installed) == versions


def test_a_mistake_in_every_likely_version_is_refused() -> None:
    with pytest.raises(Failure) as refusal:
        likely(TYPO, "0.32.0", "0.18.0")
    assert refusal.value.cause == Cause.BAD_SPEC
    assert refusal.value.detail == "engine.args: --max-modle-len: vLLM 0.32.0 does not know it"
    assert refusal.value.suggestion == "Did you mean `--max-model-len`?"


@pytest.mark.parametrize("versions", [("0.32.0", "0.17.0"), ("0.32.0", "9.9.9"), ()])
def test_what_one_likely_version_may_take_is_not_refused_yet(versions: tuple[str, ...]) -> None:
    likely({"args": ["--swap-space 4"]}, *versions)


@pytest.mark.parametrize("versions", [("0.32.0",), ("9.9.9",), ()])
def test_a_secret_in_the_arguments_is_refused_for_every_version(
    versions: tuple[str, ...],
) -> None:
    with pytest.raises(Failure, match="secrets never stand in arguments"):
        likely({"args": ["--api_key=sk-1"]}, *versions)


def test_without_a_schema_nothing_is_unknown_and_the_plan_says_how_to_get_one() -> None:
    engine = EngineSpec(image="acme/vllm:7", **TYPO)
    (note,) = check_arguments(engine, RULES, None, shipped).warnings
    assert "engine.args were not checked" in note
    assert "`moorage schema vllm --image acme/vllm:7`" in note


def test_with_a_schema_the_same_words_are_refused() -> None:
    with pytest.raises(Failure, match="--max-modle-len"):
        check_arguments(EngineSpec(**TYPO), RULES, schema_of("0.32.0"), shipped)


@pytest.mark.parametrize("wish", [{}, {"command": ["/serve"], **TYPO}])
def test_without_words_for_the_parser_there_is_nothing_to_say(wish: dict[str, Any]) -> None:
    assert check_arguments(EngineSpec(**wish), RULES, None, shipped) == ArgumentCheck()
    likely(wish, "0.32.0")


def likely(wish: dict[str, Any], *versions: str) -> None:
    schemas = [next((s for s in shipped() if s.version == version), None) for version in versions]
    check_likely(EngineSpec(**wish), RULES, schemas, shipped)
