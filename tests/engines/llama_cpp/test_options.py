"""The options of llama-server: known by build before the start, as its own parser knows them."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from moorage.adapters.engines.extract_llama_cpp_schema import schema_of_help
from moorage.adapters.engines.llama_cpp_parser import LlamaServerParser
from moorage.adapters.engines.schema_extraction import schema_of_installed
from moorage.adapters.engines.schema_store import SchemaStore, shipped_schemas
from moorage.adapters.engines.schemas import check_early, check_placed
from moorage.common.failures import Cause, Failure
from moorage.engines.llama_cpp.engine import LlamaCpp
from moorage.engines.llama_cpp.options import ALIASES, ENDS, REFUSED, RULES
from moorage.engines.llama_cpp.wheel import FIELDS
from moorage.engines.registry import ENGINES
from moorage.engines.schema.argument import Argument, Kind, Schema
from moorage.engines.schema.check import Judgement, judge
from moorage.engines.schema.reading import read
from moorage.inventory.fleet import Fleet
from moorage.spec import EngineName
from moorage.spec.tokenize import user_tokens
from tests.builders import a_cpu_host, a_host, a_spec, an_image
from tests.engines.planning import LLAMA_IMAGE, LLAMA_INSTALLED, llama_planned, only
from tests.engines.schema.shipped import assert_mistake

ENGINE = LlamaCpp()
HERE = ENGINE.argument_version(version("xllamacpp"))
EVERY = partial(shipped_schemas, EngineName.LLAMA_CPP)
DRAFTS = {"method": "draft_model", "model": "file:///drafts/small.gguf", "tokens": 4}
OLD = LLAMA_INSTALLED.model_copy(update={"version": "2026.4.8672"})

ENDING = {name for _, why, names in REFUSED if why == ENDS for name in names.split()} | {"--rpc"}
"""Options after which nothing is read; of the wheel `--rpc` is one, which it cannot do."""

GOOD = {
    **dict.fromkeys(("--control-vector-scaled", "--lora-scaled"), "file:1"),
    **dict.fromkeys(("--cpu-range", "--cpu-range-batch", "--spec-draft-cpu-range"), "0-1"),
    **dict.fromkeys(("--device", "--mmproj-device", "--spec-draft-device"), "none"),
    **dict.fromkeys(("--override-tensor", "--spec-draft-override-tensor"), "a=CPU"),
    "--lazy-mode": "on",
    "--load-mode": "mmap",
    "--logit-bias": "1+1",
    "--numa": "isolate",
    "--override-kv": "a=int:1",
    "--reasoning-format": "none",
    "--spec-type": "none",
}
"""Values of options that take some words only, which no help text lists for a program."""


@pytest.fixture(scope="module")
def parser() -> LlamaServerParser:
    """The real one, in the wheel that is installed here."""
    return LlamaServerParser()


def schema_of(written: str) -> Schema:
    found = SchemaStore(Path("/nowhere"), EngineName.LLAMA_CPP).of_version(
        ENGINE.argument_version(written)
    )
    assert found, written
    return found


def judged(entry: str, build: str = "11549") -> Judgement:
    return judge(user_tokens([entry]), schema_of(build), RULES, EVERY)


@pytest.mark.parametrize(
    ("written", "known"),
    [
        ("11549", "11549"),
        ("b11549", "11549"),
        ("2026.10.11549", "11549"),
        ("99999", "11549"),
        ("11548", "11063"),
        ("8672", "8672"),
        ("8671", "8156"),
    ],
)
def test_a_build_has_the_arguments_of_the_nearest_one_before_it(written: str, known: str) -> None:
    assert schema_of(written).version == known


@pytest.mark.parametrize("written", ["6300", "", "nightly", "9.9"])
def test_a_build_before_all_of_them_has_none(written: str) -> None:
    store = SchemaStore(Path("/nowhere"), EngineName.LLAMA_CPP)
    assert store.of_version(ENGINE.argument_version(written)) is None


@pytest.mark.parametrize(
    ("entry", "option", "message", "suggestion"),
    [
        ("--ctx-sise 512", "--ctx-sise", "llama-server 11549 does not know it", "`--ctx-size`"),
        ("--ctx 512", "--ctx", "does not know it", ""),
        (
            "--temp=0.5",
            "--temp",
            "its value comes after a blank, not after `=`",
            "Write `--temp 0.5`.",
        ),
        ("--top-k many", "--top-k", "'many' is not a whole number", ""),
        ("--cache-type-k q9", "--cache-type-k", "'q9' is not one of bf16", ""),
        ("-fa", "-fa", "its value is missing", ""),
        ("--control-vector-layer-range 1", "--control-vector-layer-range", "needs 2 values", ""),
        ("lonely", "lonely", "belongs to no option", ""),
        ("--tools all", "--tools", "run programs", "Leave it out."),
        ("-hf org/repo", "-hf", "nobody has verified", "Leave it out."),
        ("-ngl 9", "-ngl", "the claim has to hold", "`placement.partial_offload`"),
        ("-np 8", "-np", "what each request gets", "`concurrency`"),
        ("-c 512", "-c", "what each request gets", "`context`"),
        ("--port 8000", "--port", "moorage decides how", "`port`"),
        ("--api_key abc", "--api-key", "secrets never stand", "LLAMA_API_KEY"),
        ("--draft-max 8", "--draft-max", "11549 has dropped it", "Use --spec-draft-n-max"),
        ("--no-mmap", "--no-mmap", "gone since 11063", "Use `--load-mode`."),
        ("--clear-idle", "--clear-idle", "gone since 8929", "Use `--cache-idle-slots`."),
    ],
)
def test_what_the_server_would_end_with_is_told_before(
    entry: str, option: str, message: str, suggestion: str
) -> None:
    judgement = judged(entry)
    (problem, *_) = judgement.problems
    assert_mistake(Judgement((problem,)), option, message, suggestion)


@pytest.mark.parametrize(
    ("entry", "first", "before"),
    [
        ("--spec-draft-n-max 8", "9093", "8929"),
        ("--cors-origins localhost", "10068", "9873"),
        ("--cache-ram 512", "6900", "6628"),
        ("-fa on", "6628", "6301"),
        ("-fa", "6301", "6628"),
        ("--draft-max 8", "8929", "9093"),
    ],
)
def test_the_same_words_are_good_for_one_build_and_bad_for_another(
    entry: str, first: str, before: str
) -> None:
    assert judged(entry, first).problems == ()
    assert judged(entry, before).problems


@pytest.mark.parametrize(
    "entry", ["--seed -1", "--batch_size 512", "-b 512 -b 1024", "--chat-template-kwargs {}"]
)
def test_what_its_parser_takes_is_taken(entry: str, parser: LlamaServerParser) -> None:
    assert parser.accepts(user_tokens([entry]))
    assert judged(entry).problems == ()


def test_its_parser_takes_every_name_and_every_choice(
    parser: LlamaServerParser, tmp_path: Path
) -> None:
    """All on one line: a word that it did not take would end it."""
    (tmp_path / "file").write_text("{}")
    arguments = [one for one in schema_of(HERE).arguments if one.name not in ENDING]
    words = [
        word
        for one in arguments
        if not one.removed
        for option in one.options
        for value in good_values(one, tmp_path)
        for word in (option, *value)
    ]
    assert len(words) > 600
    assert parser.accepts(words)
    assert not parser.accepts([*words, "--nonesuch"])


def test_its_parser_takes_no_value_that_is_refused(parser: LlamaServerParser) -> None:
    """Of a number that is deprecated it does not look at the value."""
    strict = [
        one
        for one in schema_of(HERE).arguments
        if (one.choices or one.kind in (Kind.INTEGER, Kind.NUMBER)) and not one.deprecated
    ]
    assert len(strict) > 100
    assert [one.name for one in strict if parser.accepts([one.name, "nonesuch"])] == []
    assert all(read((one.name, "nonesuch"), schema_of(HERE)).problems for one in strict)


def test_the_shipped_schema_is_what_the_build_says(parser: LlamaServerParser) -> None:
    assert Schema.model_validate_json(schema_of_help(parser.help(), HERE)) == schema_of(HERE)


def test_the_program_is_asked_for_its_arguments() -> None:
    assert schema_of_installed(EngineName.LLAMA_CPP) == schema_of(HERE)


def test_every_name_in_the_rules_is_one_of_a_build() -> None:
    known = {name for schema in EVERY() for name in schema.options}
    others = {name for option, more in ALIASES.items() for name in (option, *more)}
    assert (set(RULES.reserved) | others | set(FIELDS)) - known == set()


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ({"name": "llama.cpp", "args": ["--ctx-sise 512"]}, "does not know it"),
        ({"name": "llama.cpp", "version": "8672", "args": ["--spec-draft-n-max 8"]}, "8672"),
        ({"name": "llama.cpp", "runtime": "process", "args": ["--device none"]}, "lacks it"),
        ({"name": "llama.cpp", "args": ["--device none"]}, ""),
    ],
)
def test_it_is_told_before_anything_is_fetched(
    engine: dict[str, Any], message: str, tmp_path: Path
) -> None:
    spec = a_spec(engine=engine)
    with pytest.raises(Failure, match=message) if message else nullcontext():
        check_early(spec, Fleet(), tmp_path)


def test_what_auto_chose_is_checked_before_anything_is_fetched(tmp_path: Path) -> None:
    spec, host = a_spec(engine={"args": ["--ctx-sise 512"]}), a_cpu_host(programs=(OLD,))
    with pytest.raises(Failure, match="llama-server 8672 does not know it"):
        check_placed(spec, ENGINES[EngineName.LLAMA_CPP], host, None, tmp_path)


def test_the_build_that_was_asked_is_told(tmp_path: Path) -> None:
    host = a_cpu_host(programs=(OLD.model_copy(update={"version": "2026.4.8700"}),))
    spec = a_spec(engine={"args": ["--top-k 4"]})
    checked = check_placed(spec, ENGINES[EngineName.LLAMA_CPP], host, None, tmp_path)
    assert checked.against == "llama.cpp 8672"


def test_an_old_build_gets_no_option_that_it_lacks() -> None:
    wish = {"engine": {"runtime": "process"}, "placement": {"accelerators": 0}}
    plan = llama_planned(wish, a_cpu_host(programs=(OLD,)), arguments=schema_of("8672"))
    (container,) = plan.containers
    words = {word for flag in container.command for word in flag.tokens}
    assert "--cache-ram" in words
    assert "--cors-origins" not in words
    assert any("--cors-origins is left out" in warning for warning in plan.warnings)


@pytest.mark.parametrize(
    ("claimed", "limit", "words"), [("auto", 4, ("4",)), (8, 4, ("8",)), ("auto", None, ())]
)
def test_it_computes_with_as_many_threads_as_it_has_cores(
    claimed: int | str, limit: int | None, words: tuple[str, ...]
) -> None:
    placement = {"accelerators": 0, "cores": claimed}
    wish = {"engine": {"container": {"cores": limit}}, "placement": placement}
    plan = llama_planned(wish, a_host(gpus=0, cpus=64), image=an_image(**LLAMA_IMAGE))
    found = [flag.tokens[1] for flag in only(plan).command if flag.tokens[0] == "--threads"]
    assert found == [*words]


def test_an_old_build_makes_no_drafts() -> None:
    wish = {"engine": {"runtime": "process"}, "placement": {"accelerators": 0}}
    with pytest.raises(Failure, match="build 8672 of llama") as refused:
        llama_planned({**wish, "speculative": DRAFTS}, a_cpu_host(programs=(OLD,)))
    assert refused.value.cause is Cause.BAD_SPEC
    assert llama_planned(wish, a_cpu_host(programs=(OLD,)))


def good_values(argument: Argument, folder: Path) -> list[tuple[str, ...]]:
    """Values that the parser takes, one after the other; the folder holds `file`."""
    if not argument.takes_value:
        return [()]
    if value := GOOD.get(argument.name):
        return [(value,)]
    if argument.name.endswith(("-file", "-path")):
        return [(str(folder / "file" if argument.name.endswith("-file") else folder),)]
    if argument.choices:
        return [(str(choice),) for choice in argument.choices]
    return [("1",) * (argument.values if isinstance(argument.values, int) else 1)]
