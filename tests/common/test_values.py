from __future__ import annotations

import types
import unicodedata
from collections.abc import Iterator
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from moorage.common.values import DEEPEST, LARGEST, MOST_ENTRIES
from moorage.inventory.fleet import Fleet
from moorage.policy.rules import Policy
from moorage.reports.problems import problems_of
from moorage.spec import ModelSpec

KEY = "[key]"
Place = tuple[str | int, ...]
OVERRIDES = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def refused_in_any_text(character: str) -> bool:
    """Control characters but line feed and tab, half characters, overrides of the direction."""
    if character in "\n\t":
        return False
    kind = unicodedata.category(character)
    return kind in ("Cc", "Cs") or unicodedata.bidirectional(character) in OVERRIDES


# More than a million characters are looked at once they are needed.
BAD = st.deferred(
    lambda: st.sampled_from(sorted(filter(refused_in_any_text, map(chr, range(0x110000)))))
)


def places(kind: Any) -> Iterator[Place]:
    """Where a text may stand in a value of a type: every leaf, every key of a mapping."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        for name, field in kind.model_fields.items():
            yield from ((name, *rest) for rest in places(field.annotation))
    elif kind is str or kind is Any:
        yield ()
    elif get_origin(kind) is dict:
        yield ("key", KEY)
        yield from (("key", *rest) for rest in places(get_args(kind)[1]))
    elif get_origin(kind) is tuple:
        yield from ((0, *rest) for rest in places(get_args(kind)[0]))
    elif get_origin(kind) is Annotated:
        yield from places(get_args(kind)[0])
    elif get_origin(kind) in (Union, types.UnionType):
        for branch in get_args(kind):
            yield from places(branch)


def holding(place: Place, text: str) -> Any:
    """The smallest content with a text at a place."""
    if not place:
        return text
    step, *rest = place
    if rest == [KEY]:
        return {text: "x"}
    inner = holding(tuple(rest), text)
    return [inner] if isinstance(step, int) else {step: inner}


MODELS = (ModelSpec, Fleet, Policy)
EVERY = [(model, place) for model in MODELS for place in dict.fromkeys(places(model))]


def test_the_walk_finds_texts_at_every_depth() -> None:
    assert {
        (ModelSpec, ("labels", "key")),
        (ModelSpec, ("labels", "key", KEY)),
        (ModelSpec, ("readiness", "prompts", 0, "messages", 0, "content")),
        (ModelSpec, ("engine", "application", "args", "key")),
        (Fleet, ("hosts", 0, "labels", "key", KEY)),
        (Fleet, ("engines", "key", "versions", "key", "run_command")),
    } <= set(EVERY)


@settings(max_examples=60, deadline=None)
@given(before=st.text("ab", max_size=2), bad=BAD, after=st.text("ab", max_size=2))
def test_no_text_that_users_write_holds_what_cannot_be_shown(
    before: str, bad: str, after: str
) -> None:
    text = f"{before}{bad}{after}"
    for model, place in EVERY:
        with pytest.raises(ValidationError) as caught:
            model.model_validate(holding(place, text))
        wrong = [tuple(error["loc"]) for error in caught.value.errors()]
        key = text.encode(errors="surrogatepass").decode(errors="replace")  # as pydantic does
        start = (*place[:-2], key) if place[-1:] == (KEY,) else place
        assert any(_leads_to(start, found) for found in wrong), (place, ascii(text), wrong)


def _leads_to(place: Place, found: tuple[int | str, ...]) -> bool:
    """Whether an error is about a place; branches of unions add steps to its path."""
    rest = iter(found)
    return all(step in rest for step in place)


@pytest.mark.parametrize("character", ["\n", "\t", "\u200f", "\ufeff"])
def test_a_text_of_one_line_is_one_line(character: str) -> None:
    for labels in ({"tier": f"a{character}b"}, {f"ti{character}er": "a"}):
        with pytest.raises(ValidationError):
            ModelSpec.model_validate({"name": "a", "source": "hf://o/a", "labels": labels})
        with pytest.raises(ValidationError):
            Fleet.model_validate({"hosts": [{"name": "a", "labels": labels}]})


LINES = "one\n\ttwo \u05e9\u200f \U0001f469\u200d\U0001f680"


@pytest.mark.parametrize(
    "content",
    [
        {"readiness": {"prompts": [{"prompt": LINES, "expect": "a\nb"}]}},
        {"readiness": {"prompts": [{"messages": [{"content": LINES}]}]}},
        {"readiness": {"probe": {"prompt": LINES}}},
        {"engine": {"args": [f"--chat-template '{LINES}'"], "env": {"A": LINES}}},
        {"engine": {"command": ["sh", "-c", LINES]}},
        {"engine": {"entrypoint": ["sh", "-c", LINES]}},
        {"labels": {"owner": "Žofie \U0001f469\u200d\U0001f680"}},
    ],
    ids=str,
)
def test_what_needs_lines_and_other_scripts_may_have_them(content: dict[str, Any]) -> None:
    assert ModelSpec.model_validate({"name": "a", "source": "hf://o/a", **content})


@pytest.mark.parametrize(
    "number", [2**63, 10**400, 10**5000, 1e300, float("inf"), float("nan")], ids=lambda _: ""
)
@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("context", {"context": 0}),
        ("concurrency", {"concurrency": 0}),
        ("port", {"port": 0}),
        ("replicas", {"replicas": 0}),
        ("placement.seed", {"placement": {"seed": 0}}),
        ("placement.ram", {"placement": {"ram": 0}}),
        ("lora[0].rank", {"lora": [{"name": "x", "source": "hf://o/x", "rank": 0}]}),
        ("extended_kv_cache.ratio", {"extended_kv_cache": {"ratio": 0}}),
        ("replace.canary_share", {"replace": {"canary_share": 0}}),
        ("readiness.deadlines.load_seconds", {"readiness": {"deadlines": {"load_seconds": 0}}}),
        ("engine.container.user", {"engine": {"container": {"user": 0}}}),
        ("engine.application.args.deep", {"engine": {"application": {"args": {"deep": 0}}}}),
    ],
)
def test_a_number_that_nothing_can_be_counted_with_is_refused_at_its_field(
    path: str, content: dict[str, Any], number: float
) -> None:
    filled = _with(content, number)
    with pytest.raises(ValidationError) as caught:
        ModelSpec.model_validate({"name": "a", "source": "hf://o/a", **filled})
    found = {problem.path: str(problem) for problem in problems_of(caught.value, ModelSpec)}
    assert any(path.startswith(wrong) for wrong in found), found
    assert all(len(problem) < 400 for problem in found.values())


def _with(content: Any, number: float) -> Any:
    if isinstance(content, dict):
        return {key: _with(inner, number) for key, inner in content.items()}
    if isinstance(content, list):
        return [_with(inner, number) for inner in content]
    return number if content == 0 else content


def test_the_largest_number_is_one() -> None:
    spec = {"name": "a", "source": "hf://o/a", "placement": {"seed": LARGEST}}
    assert ModelSpec.model_validate(spec).placement.seed == LARGEST


@pytest.mark.parametrize(
    "args",
    [{"a": [1] * (MOST_ENTRIES + 1)}, {str(key): 1 for key in range(MOST_ENTRIES + 1)}],
    ids=["list", "mapping"],
)
def test_what_may_be_anything_has_a_limit(args: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="entries"):
        ModelSpec.model_validate(
            {"name": "a", "source": "hf://o/a", "engine": {"application": {"args": args}}}
        )


def test_and_a_depth() -> None:
    args: dict[str, Any] = {}
    args["again"] = args
    nested: Any = 1
    for _ in range(DEEPEST + 1):
        nested = {"a": nested}
    for content in (args, nested):
        with pytest.raises(ValidationError, match=r"levels|ecursi"):
            ModelSpec.model_validate(
                {"name": "a", "source": "hf://o/a", "engine": {"application": {"args": content}}}
            )
