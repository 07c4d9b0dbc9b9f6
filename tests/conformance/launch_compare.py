"""How an answer to a launch case is held against what is expected."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from moorage.spec.tokenize import is_option
from tests.conformance.launch_answer import CLASSES

Json = Mapping[str, Any]
Difference = tuple[str, Any, Any]
Option = tuple[str, tuple[str, ...]]

RESOURCES = {"nvidia": "cuda", "amd": "rocm", "huawei": "cann", "mthreads": "musa", "hygon": "dcu"}
"""Accelerator type by the vendor in the peer's resource key."""

OF_HOST = {
    "NCCL_SOCKET_IFNAME": ("GLOO_SOCKET_IFNAME",),
    "HCCL_SOCKET_IFNAME": ("HCCL_IF_IP", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME"),
}
"""What the peer leaves out when the host's own environment names an interface."""


def compared(case: Json, got: Json) -> Iterator[Difference]:
    """Every difference, that of a marked aspect too."""
    expected = case["expected"]
    if expected.get("error") or got["error"]:
        yield from _errors(expected.get("error"), got["error"])
        return
    for field, wanted in expected.items():
        if field in COMPARE:
            found = COMPARE[field](case, wanted, got[field])
            yield from (item for item in found if not _of_length(case, item))


def options(words: Sequence[str]) -> tuple[tuple[str, ...], Counter[Option]]:
    """The words before the first option, and the options with their values; JSON is parsed."""
    first = next((i for i, word in enumerate(words) if is_option(word)), len(words))
    found: Counter[Option] = Counter()
    name, values = "", []
    for word in (*words[first:], "--"):
        if word != "--" and not is_option(word):
            values.append(_plain(word))
            continue
        if name:
            found[name, tuple(values)] += 1
        name, joined, value = word.partition("=")
        values = [_plain(value)] if joined else []
    return tuple(words[:first]), found


def _errors(expected: Json | None, got: Sequence[str] | None) -> Iterator[Difference]:
    """Classes that our words are not sorted into are met by any refusal."""
    wanted = expected["class"] if expected else None
    known = {name for names in CLASSES.values() for name in names}
    if got and wanted and (wanted in got or wanted not in known):
        return
    yield "error", wanted, got


def _argv(case: Json, wanted: list[str], got: list[str]) -> Iterator[Difference]:
    if wanted[:1] != got[:1]:
        yield "argv.first", wanted[:1], got[:1]
    yield from _same_options("argv", wanted, got)
    yield from _user_block(case, got)


def _same_options(field: str, wanted: Sequence[str], got: Sequence[str]) -> Iterator[Difference]:
    """As sets, and what stands before them word by word."""
    (start, mine), (before, other) = options(got), options(wanted)
    if start != before:
        yield f"{field}.start", before, start
    for option in other.keys() - mine.keys():
        yield f"{field}.{option[0]}", option, "missing"
    for option in mine.keys() - other.keys():
        yield f"{field}.{option[0]}", "none such", option


def _user_block(case: Json, got: list[str]) -> Iterator[Difference]:
    user = case["expected"].get("user_argv")
    if not user:
        return
    places = [i for i in range(len(got)) if got[i : i + len(user)] == user]
    if not places:
        yield "argv.user", user, "not together"
        return
    names = {_name(word) for word in user if is_option(word)}
    after = [word for word in got[places[-1] + len(user) :] if is_option(word)]
    for word in after:
        if _name(word) in names:
            yield "argv.user", "after what it could repeat", word


def _name(word: str) -> str:
    return word.partition("=")[0].replace("_", "-")


def _exact(field: str) -> Callable[[Json, Any, Any], Iterator[Difference]]:
    def compare(_: Json, wanted: Any, got: Any) -> Iterator[Difference]:
        if wanted != got:
            yield field, wanted, got

    return compare


def _version(_: Json, wanted: str | None, got: str | None) -> Iterator[Difference]:
    if (wanted or None) != (got or None):
        yield "engine_version", wanted, got


def _injected(_: Json, wanted: list[str], got: list[str]) -> Iterator[Difference]:
    yield from _same_options("injected", wanted, got)


def _stored(_: Json, wanted: list[str], got: list[str]) -> Iterator[Difference]:
    """Option by option, in the very writing."""
    mine, other = Counter(_entries(got)), Counter(_entries(wanted))
    for entry in (mine - other) + (other - mine):
        yield f"injected_stored.{entry[0].partition('=')[0]}", other[entry], mine[entry]


def _entries(stored: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """An option with the values that stand apart from it."""
    starts = [i for i, word in enumerate(stored) if is_option(word)]
    for start, end in pairwise((*starts, len(stored))):
        name, joined, value = stored[start].partition("=")
        yield (f"{name}{joined}{_plain(value)}", *map(_plain, stored[start + 1 : end]))


def _command(_: Json, wanted: list[str], got: list[str]) -> Iterator[Difference]:
    yield from _same_options("command", wanted, got)


def _env(case: Json, wanted: Json, got: Json) -> Iterator[Difference]:
    """Without the variables that come from the host: ours inherits none."""
    host, own = case["input"]["host"].get("env") or {}, case["input"]["model"].get("env") or {}
    out = {name for name in host if name not in own}
    out |= {other for name in out for other in OF_HOST.get(name, ())}
    for name in sorted((wanted.keys() | got.keys()) - out):
        if wanted.get(name) != got.get(name):
            yield f"env.{name}", wanted.get(name), got.get(name)


def _ray(_: Json, wanted: Json | None, got: Json | None) -> Iterator[Difference]:
    if wanted is None or got is None:
        if wanted != got:
            yield "ray", wanted, got
        return
    for field, value in wanted.items():
        if field == "command":
            yield from _same_options("ray.command", value, got[field])
        elif field == "mounts":
            if sorted(value) != sorted(got[field]):
                yield "ray.mounts", value, got[field]
        elif value != got[field]:
            yield f"ray.{field}", value, got[field]


def _container(_: Json, wanted: Json, got: Any) -> Iterator[Difference]:
    mine = got
    for field, value in wanted.items():
        other = _devices(value, mine[field]) if field == "devices" else value
        if other != mine[field]:
            yield f"container.{field}", other, mine[field]


def _devices(wanted: Mapping[str, str], got: Json) -> dict[str, list[int]]:
    """In our words; a key of which we know no type takes ours."""
    only = next(iter(got), "")
    return {
        RESOURCES.get(key.partition(".")[0], only): [int(index) for index in text.split(",")]
        for key, text in wanted.items()
    }


def _of_length(case: Json, difference: Difference) -> bool:
    """Whether only the length is different, where transformers' class decides about it."""
    return bool(case.get("transformers_dependent")) and difference[0].endswith(".--max-model-len")


def _length(case: Json, wanted: int, got: int) -> Iterator[Difference]:
    """Where transformers' class for a model changes it, the plain reading is as good."""
    allowed = {wanted}
    if case.get("transformers_dependent"):
        allowed.add(case["expected"].get("derived_without_model_class"))
    if got not in allowed:
        yield "derived_max_model_len", wanted, got


def _plain(text: str) -> str:
    if not text.startswith(("{", "[")):
        return text
    try:
        return json.dumps(json.loads(text), sort_keys=True)
    except ValueError:
        return text


COMPARE: dict[str, Callable[[Json, Any, Any], Iterator[Difference]]] = {
    "argv": _argv,
    "user_argv": _exact("user_argv"),
    "injected": _injected,
    "injected_stored": _stored,
    "command": _command,
    "script": _exact("script"),
    "env": _env,
    "image": _exact("image"),
    "engine_version": _version,
    "ray": _ray,
    "container": _container,
    "derived_max_model_len": _length,
    "release_name_suffix": _exact("release_name_suffix"),
}
