"""From entries as users write them to the words of a command line, and one way to write them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from itertools import takewhile
from json import JSONDecoder

from moorage.failures import Cause, Failure

CONTINUED = re.compile(r"\\\r?\n")
JSON_START = re.compile(r"(?<=[=\s])[{\[]")
KEPT = re.compile("\x1f(\\d+)\x1f")


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


def _is_value(token: str) -> bool:
    return not is_option(token)
