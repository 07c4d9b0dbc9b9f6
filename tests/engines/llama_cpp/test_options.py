"""The options of llama-server: known before the start, and known to the real build."""

from __future__ import annotations

import re
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from moorage.adapters.engines.schemas import check_early, check_placed
from moorage.common.failures import Cause, Failure
from moorage.engines.llama_cpp.options import BY_NAME, REFUSED, REMOVED, check_options
from moorage.engines.registry import ENGINES
from moorage.inventory.fleet import Fleet
from moorage.spec import EngineName
from moorage.spec.arguments import parse_words
from tests.builders import a_cpu_host, a_spec
from tests.engines.planning import LLAMA_INSTALLED, llama_planned

DRAFTS = {"method": "draft_model", "model": "file:///drafts/small.gguf", "tokens": 4}


def test_the_real_parser_has_every_option() -> None:
    """The names that llama.cpp's own parser has stand in the library of the wheel."""
    package = find_spec("xllamacpp")
    assert package is not None
    assert package.origin is not None
    (library,) = Path(package.origin).parent.glob("*.so")
    # Some are the ends of longer texts, since a linker keeps those once.
    known = set(re.findall(rb"(-[A-Za-z0-9-]+)\0", library.read_bytes()))
    ours = {name.encode() for name in (*BY_NAME, *REFUSED, *REMOVED)}
    assert {name for name in ours if not any(one.endswith(name) for one in known)} == set()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--draft-max 8", "Write `--spec-draft-n-max`"),
        ("--draft-n-min 2", "Write `--spec-draft-n-min`"),
        ("--ctx-sise 512", "Did you mean `--ctx-size`?"),
        ("--cache-type-k q9", "--cache-type-k"),
        ("--tools all", "run programs"),
        ("--temp=0.5", "Write `--temp 0.5`"),
    ],
)
def test_what_the_server_would_end_with_is_told_before(words: str, told: str) -> None:
    failure = check_options(parse_words(words.split()), wheel=False)
    assert failure is not None
    assert told in f"{failure.detail} {failure.suggestion}"


@pytest.mark.parametrize(
    ("engine", "told"),
    [
        ({"name": "llama.cpp", "args": ["--ctx-sise 512"]}, "does not know it"),
        ({"name": "llama.cpp", "runtime": "process", "args": ["--device none"]}, "lacks it"),
        ({"name": "llama.cpp", "args": ["--device none"]}, ""),
    ],
)
def test_it_is_told_before_anything_is_fetched(
    engine: dict[str, Any], told: str, tmp_path: Path
) -> None:
    spec = a_spec(engine=engine)
    with pytest.raises(Failure, match=told) if told else nullcontext():
        check_early(spec, Fleet(), tmp_path)


def test_what_auto_chose_is_checked_before_anything_is_fetched(tmp_path: Path) -> None:
    spec = a_spec(engine={"args": ["--ctx-sise 512"]})
    with pytest.raises(Failure, match="does not know it"):
        check_placed(spec, ENGINES[EngineName.LLAMA_CPP], a_cpu_host(), None, tmp_path)


def test_an_old_build_makes_no_drafts() -> None:
    old = LLAMA_INSTALLED.model_copy(update={"version": "2026.4.8960"})
    wish = {"engine": {"runtime": "process"}, "placement": {"accelerators": 0}}
    with pytest.raises(Failure, match="build 8960 of llama") as refused:
        llama_planned({**wish, "speculative": DRAFTS}, a_cpu_host(programs=(old,)))
    assert refused.value.cause is Cause.BAD_SPEC
    assert llama_planned(wish, a_cpu_host(programs=(old,)))
