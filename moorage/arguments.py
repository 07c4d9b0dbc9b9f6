"""Arguments as users write them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import takewhile
from json import JSONDecoder
from typing import Any

from moorage.failures import Cause, Failure

MULTIPLES = {
    **{"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12},
    **{"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40},
}
"""What vLLM makes of a letter behind a number (`utils/argparse_utils.py`)."""

CONTINUED = re.compile(r"\\\r?\n")
JSON_START = re.compile(r"(?<=[=\s])[{\[]")
KEPT = re.compile("\x1f(\\d+)\x1f")

NUMBER = re.compile(r"(\d+(?:\.\d+)?)([kKmMgGtT]?)")


def user_tokens(entries: Sequence[str]) -> tuple[str, ...]:
    """Split `engine.args` into words: an entry is one word, or a whole line such as `--a b`.

    An entry that starts with an option is split as a shell would: quotes are taken off, a
    backslash at the end of a line continues it. JSON needs no quotes. `--k = v` and `--k =v`
    become `--k=v`. Any other entry (a JSON value, a path with spaces) stays whole.

    Raises:
        Failure: `BAD_SPEC` when a quote is not closed.
    """
    tokens: list[str] = []
    for entry in filter(None, map(str.strip, entries)):
        if is_option(entry.split(None, 1)[0]):
            tokens.extend(_joined(_split(entry)))
        else:
            tokens.append(entry)
    return tuple(tokens)


def is_option(word: str) -> bool:
    """Whether a word names an option; a negative number is a value."""
    if not word.startswith("-") or word in ("-", "--"):
        return False
    try:
        float(word)
    except ValueError:
        return True
    return False


def _split(entry: str) -> list[str]:
    """Words of a line; JSON is taken out first, for a shell would take its quotes."""
    kept: list[str] = []
    line = CONTINUED.sub(" ", _without_json(entry, kept))
    if line.endswith("\\") and (len(line) - len(line.rstrip("\\"))) % 2:
        line = line[:-1]
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise Failure(Cause.BAD_SPEC, f"engine.args: {entry}: {error}") from error
    return [KEPT.sub(lambda match: kept[int(match[1])], word) for word in words]


def _without_json(text: str, kept: list[str]) -> str:
    parts, start = [], 0
    for match in JSON_START.finditer(text):
        end = _json_end(text, match.start()) if match.start() >= start else None
        if end is not None:
            parts.append(f"{text[start : match.start()]}\x1f{len(kept)}\x1f")
            kept.append(text[match.start() : end])
            start = end
    return "".join((*parts, text[start:]))


def _json_end(text: str, start: int) -> int | None:
    """Where JSON ends. After `=` its brackets tell, even when it is none; else it must be JSON."""
    try:
        return JSONDecoder().raw_decode(text, start)[1]
    except ValueError:
        return _bracket_end(text, start) if text[start - 1] == "=" else None


def _bracket_end(text: str, start: int) -> int:
    depth, quoted, escaped = 0, False, False
    for index in range(start, len(text)):
        letter = text[index]
        if escaped or letter == "\\":
            escaped = not escaped
        elif letter == '"':
            quoted = not quoted
        elif not quoted:
            depth += (letter in "{[") - (letter in "}]")
            if not depth:
                return index + 1
    return len(text)


def _joined(words: Sequence[str]) -> list[str]:
    """The same words with `--k = v`, `--k =v` and `--k= v` as one."""
    joined: list[str] = []
    for word in words:
        last = joined[-1] if joined else ""
        awaits = is_option(last) and last.endswith("=") and last.count("=") == 1
        equals = word.startswith("=") and is_option(last) and "=" not in last
        if equals or (awaits and not is_option(word)):
            joined[-1] = last + word
        else:
            joined.append(word)
    return joined


def is_written(tokens: Sequence[str], flag: str, *aliases: str) -> bool:
    """Whether the user decides about an option: under any name, by key, or against it.

    `--speculative-config.method` decides about `--speculative-config`, and `--no-omni` about
    `--omni`.
    """
    names = {flag, *aliases, flag.replace("--", "--no-", 1)}
    return any(name.partition(".")[0] in names for name, _ in _options(tokens))


def has_argument(tokens: Sequence[str], flag: str) -> bool:
    """Whether the user's words contain an option, in either writing (`--a b`, `--a=b`, `--a_b`)."""
    if not flag.startswith("--"):
        return False
    wanted = flag.partition("=")[0].replace("_", "-")
    return any(token.partition("=")[0].replace("_", "-") == wanted for token in tokens)


def argument(tokens: Sequence[str], *names: str) -> str | None:
    """The value of an option in the user's words, in any writing; the last one counts.

    Args:
        tokens: As `user_tokens` made them.
        names: The option and its other names, such as `--tensor-parallel-size` and `-tp`.

    Returns:
        Its value, empty when it has none; None when it is not there.
    """
    values = arguments(tokens, *names)
    return None if values is None else next(iter(values), "")


def arguments(tokens: Sequence[str], *names: str) -> tuple[str, ...] | None:
    """All values of an option that takes several; None when it is not there."""
    found = [values for name, values in _options(tokens) if name in names]
    return found[-1] if found else None


def switch(tokens: Sequence[str], flag: str) -> bool | None:
    """Whether an option is switched on (`--flag`) or off (`--no-flag`); None without it."""
    off = flag.replace("--", "--no-", 1)
    found = [name == flag for name, _ in _options(tokens) if name in (flag, off)]
    return found[-1] if found else None


def whole_number(tokens: Sequence[str], *names: str) -> int | None:
    """The value of an option as vLLM reads numbers: `8192`, `8K` and `8.192k`; None without it.

    Raises:
        Failure: `BAD_SPEC` when it is no number.
    """
    value = argument(tokens, *names)
    if value is None:
        return None
    match = NUMBER.fullmatch(value.strip())
    if not match or (match[2].isupper() and "." in match[1]):
        raise Failure(Cause.BAD_SPEC, f"engine.args: {names[0]}: {value!r} is not a number")
    return int(float(match[1]) * MULTIPLES.get(match[2], 1))


def json_argument(tokens: Sequence[str], *names: str) -> dict[str, Any] | None:
    """The value of an option that takes JSON, whole or by keys (`--flag.key value`).

    Raises:
        Failure: `BAD_SPEC` when it is no JSON object.
    """
    content: dict[str, Any] | None = None
    for name, values in _options(tokens):
        option, _, path = name.partition(".")
        if option not in names:
            continue
        value = _json(values[0]) if values else True
        if path:
            content = _merged(content or {}, path.split("."), value)
        elif isinstance(value, dict):
            content = value
        else:
            raise Failure(Cause.BAD_SPEC, f"engine.args: {names[0]}: not a JSON object: {value!r}")
    return content


def _options(tokens: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each option under its name with dashes, and its values."""
    start = None
    for index, token in enumerate((*tokens, "--")):
        if token != "--" and not is_option(token):
            continue
        if start is not None:
            name, equals, value = tokens[start].partition("=")
            own = (value,) if equals else ()
            yield _dashed(name), (*own, *tokens[start + 1 : index])
        start = index


def _dashed(name: str) -> str:
    option, dot, path = name.partition(".")
    return option.replace("_", "-") + dot + path


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _merged(content: dict[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    key, *rest = path
    if not rest:
        return {**content, key: value}
    below = content.get(key)
    return {**content, key: _merged(below if isinstance(below, dict) else {}, rest, value)}


def in_one_writing(tokens: Sequence[str], equals: bool) -> tuple[str, ...]:
    """Words with every option and its one value written alike: `--k=v`, or `--k v`.

    An option with several values keeps them apart: `--k=a --k=b` would mean the last one only.
    """
    written: list[str] = []
    lead = next((i for i, token in enumerate(tokens) if is_option(token)), len(tokens))
    for index, token in enumerate(tokens):
        if index < lead or not is_option(token):
            continue
        name, joined, value = token.partition("=")
        values = [value] if joined else list(takewhile(_is_value, tokens[index + 1 :]))
        stray = takewhile(_is_value, tokens[index + 1 :]) if joined else ()
        one = equals and len(values) == 1
        written += [f"{name}={values[0]}"] if one else [name, *values]
        written += stray
    return (*tokens[:lead], *written)


def _is_value(token: str) -> bool:
    return not is_option(token)
