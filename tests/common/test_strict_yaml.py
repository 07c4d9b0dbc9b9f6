from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from moorage.common.strict_yaml import (
    DEEPEST,
    LARGEST_TEXT,
    MOST_ENTRIES,
    YamlError,
    decode,
    places,
)

KIB = 1024


def laughs(first: str, line: Callable[[str, str], str], count: int = 9) -> str:
    """Lines that each hold the one before ten times."""
    lines = [first]
    for number in range(1, count):
        lines.append(line(f"a{number}", ", ".join([f"*a{number - 1}"] * 10)))
    return "\n".join(lines)


BOMBS = {
    "lists": laughs("k0: &a0 [x]", lambda name, inner: f"k{name}: &{name} [{inner}]"),
    "mappings": laughs(
        "k0: &a0 {x: y}",
        lambda name, inner: (
            f"k{name}: &{name} {{"
            + ", ".join(f"{n}: {one}" for n, one in enumerate(inner.split(", ")))
            + "}"
        ),
    ),
    "merge keys": laughs(
        "k0: &a0 {x: y}", lambda name, inner: f"k{name}: &{name} {{<<: [{inner}]}}"
    ),
    "in one document": "a: &a0 [x]\nb:\n- &a1 ["
    + "*a0," * 90
    + "]\n- &a2 ["
    + "*a1," * 90
    + "]\n- ["
    + "*a2," * 90
    + "]",
    "a long text": f"a: &a {'x' * 100}\nb: [{'*a, ' * 20_000}]",
    "itself in a list": "a: &a [*a]",
    "itself in a mapping": "a: &a {b: *a}",
    "itself as a key": "a: &a {*a : b}",
    "itself by a merge key": "a: &a {<<: *a}",
    "two in each other": "a: &a [&b [*a], *b]",
    "an alias of a list as a key": "a: &a [x]\n? *a\n: b",
    "args": "engine: {args: [" + "a," * 100_000 + "]}",
    "keys": "".join(f"k{number}: 1\n" for number in range(15_000)),
    "empty texts": "a: [" + "''," * 50_000 + "]",
    "deep lists": "[" * 100_000,
    "deep mappings": "{a: " * 50_000,
    "deep blocks": "- " * 50_000,
    "deep keys": "? " * 50_000,
    "indented": "".join(" " * depth + "a:\n" for depth in range(600)),
    "large": "a: b\n" * 2_000_000,
    "one large text": "a: " + "x" * 10_000_000,
    "words": "a: " + "x " * (127 * KIB) + "\n[",
    "escapes": 'a: "' + "\\n" * (127 * KIB),
    "comments": "#\n" * (127 * KIB) + "[",
    "blank lines": "a: b" + "\n" * (255 * KIB) + "[",
    "anchors": "a: [" + ", ".join(f"&a{number} x" for number in range(20_000)) + "]",
    "documents": "--- a\n" * 40_000,
    "directives": "%TAG ! x\n" * 20_000,
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_within_a_second(name: str) -> None:
    begun = time.process_time()
    with pytest.raises(YamlError) as caught:
        decode(BOMBS[name])
    assert time.process_time() - begun < 3  # CI's machines are slow; one second here
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (f"a: {{b: [1, {'9' * 5000}]}}", "a.b[1]"),
        (f"a: [{{b: 0x{'f' * 5000}}}]", "a[0].b"),
        ("a: 1e400", "a"),
        ("a: {b: -1e999}", "a.b"),
        ("a: .inf", "a"),
        ("a: [.nan]", "a[0]"),
        (f"a: 1.{'0' * 70}", "a"),
        ("a: -_", "a"),
        ("a: {b: !!python/object:os.system x}", "a.b"),
        ("a: {b: !!binary eA==}", "a.b"),
        ("a: !own x", "a"),
        ("a: [!!set {x, y}]", "a[0]"),
        ("a: {b: 1, b: 2}", "a"),
        ("a: *b", "a"),
        ("a: {<<: 1}", "a"),
        ("a: {[x]: 1}", "a"),
    ],
)
def test_what_is_refused_is_refused_at_its_path(text: str, path: str) -> None:
    with pytest.raises(YamlError) as caught:
        decode(text)
    assert caught.value.path == path


@pytest.mark.parametrize("text", ["{{model_path}}", "%s", "* 8 * * *", "@daily", "`a`"])
def test_a_text_that_begins_with_a_sign_of_yaml_is_asked_to_be_quoted(text: str) -> None:
    with pytest.raises(YamlError, match="needs quotes"):
        decode(f"a: [{text}]")
    assert decode(f"a: ['{text}']") == {"a": [text]}


@pytest.mark.parametrize(
    "content",
    [b"a: \xff", b"\xff\xfea\x00", b"a: \x00", b"a: \xed\xa0\x80", b"a: \x1b[2J", "a: \ud800"],
)
def test_what_is_no_text_is_refused(content: bytes | str) -> None:
    with pytest.raises(YamlError):
        decode(content)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("# nothing\n", None),
        ("\ufeffa: b", {"a": "b"}),
        ("a: b\r\nc: |\r\n  one\r\n  two\r\n", {"a": "b", "c": "one\ntwo\n"}),
        ("a: 2001-99-99\nb: 2026-01-01", {"a": "2001-99-99", "b": "2026-01-01"}),
        ("a: !!str 1\nb: ! 2\nc: !!int 3\nd: !!map {}", {"a": "1", "b": 2, "c": 3, "d": {}}),
        ("a: &a [x]\nb: *a\nc: [*a, *a]", {"a": ["x"], "b": ["x"], "c": [["x"], ["x"]]}),
        ("a: &a {x: 1, y: 1}\nb: {<<: *a, y: 2}", {"a": {"x": 1, "y": 1}, "b": {"y": 2, "x": 1}}),
        (
            "a: &a {x: 1}\nb: &b {x: 2, y: 2}\nc: {<<: [*a, *b]}",
            {"a": {"x": 1}, "b": {"x": 2, "y": 2}, "c": {"x": 1, "y": 2}},
        ),
        (
            "a: 0x1F\nb: 0o17\nc: 1_000\nd: 1e3\ne: -.5",
            {"a": 31, "b": 15, "c": 1000, "d": 1e3, "e": -0.5},
        ),
        (
            "a: yes\nb: true\nc: ~\nd:\ne: 'true'",
            {"a": "yes", "b": True, "c": None, "d": None, "e": "true"},
        ),
    ],
)
def test_yaml_is_decoded_as_version_1_2_says(text: str, value: Any) -> None:
    assert decode(text.encode()) == value


def test_the_limits_themselves_are_accepted() -> None:
    assert len(decode("[" + "a," * (MOST_ENTRIES - 1) + "]")) == MOST_ENTRIES - 1
    assert decode("[" * DEEPEST + "]" * DEEPEST)
    assert decode("# " + "x" * (LARGEST_TEXT - 7) + "\na: b") == {"a": "b"}


TEXTS = st.text("ab0123.eE_xo+-~: #'\"\n[]{},&*!|>%@`<\t", max_size=30)


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_what_is_accepted_says_what_ruamel_reads(text: str) -> None:
    try:
        value = decode(text)
    except YamlError:
        return
    try:
        known = YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError):
        return
    assert value == known


def test_each_field_has_a_place() -> None:
    text = "a: 1\nb:\n  - c: &x {d: 2}\n  - *x\n"
    assert places(text) == {
        **{"a": "1:1", "b": "2:1", "b[0]": "3:5", "b[0].c": "3:5", "b[0].c.d": "3:12"},
        "b[1]": "4:5",
    }
