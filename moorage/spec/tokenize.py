"""Splits the entries of `engine.args` into the words of a command line."""

import re
import shlex
from collections.abc import Sequence
from json import JSONDecodeError, JSONDecoder

from moorage.common.failures import Cause, Failure
from moorage.common.printable import clipped

CONTINUED = re.compile(r"\\\r?\n")
JSON_START = re.compile(r"(?<=[=\s])[{\[]")
KEPT = re.compile("\x1f(\\d+)\x1f")

LONGEST_SHOWN = 200
"""Most characters of an entry in a message."""

LONGEST_ENTRY = 32_768
"""Most characters of an entry: enough for templates; Linux accepts four times as many in a word."""

MOST_KEYS = 32
"""Most keys of an option such as `--a.b.c`."""

MOST_DIGITS = 64
"""Most digits in a row: no engine needs longer numbers."""

MOST_LOST = 1_000_000
"""Most characters that are read in search of JSON without finding any."""

DIGITS = re.compile(rf"\d{{{MOST_DIGITS + 1}}}")
KEYS = re.compile(rf"-[^=\s.]*(?:\.[^=\s.]*){{{MOST_KEYS + 1}}}")


def user_tokens(entries: Sequence[str]) -> tuple[str, ...]:
    """Split `engine.args` into words: an entry is one word, or a whole line such as `--a b`.

    An entry that starts with an option is split as a shell would: quotes are removed, a backslash
    at the end of a line continues it. JSON needs no quotes. `--k = v` and `--k =v` become
    `--k=v`. Any other entry (a JSON value, a path with spaces) stays whole.

    Raises:
        Failure: `BAD_SPEC` when a quote is not closed, or an entry exceeds a limit.
    """
    tokens: list[str] = []
    for entry in filter(None, map(str.strip, entries)):
        _require_bounds(entry)
        is_line = is_option(entry.split(None, 1)[0])
        tokens += _joined(_split(entry)) if is_line else [entry]
    return tuple(tokens)


def _require_bounds(entry: str) -> None:
    """Refuse entries that would take too long to parse, or nest too deep."""
    if len(entry) > LONGEST_ENTRY:
        raise _refused(entry, f"longer than {LONGEST_ENTRY} characters")
    if DIGITS.search(entry):
        raise _refused(entry, f"a number of more than {MOST_DIGITS} digits")
    if KEYS.match(entry):
        raise _refused(entry, f"an option with more than {MOST_KEYS} keys")


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
    """Words of a line; JSON is set aside first, since splitting would remove its quotes."""
    kept: list[str] = []
    line = CONTINUED.sub(" ", _without_json(entry, kept))
    if line.endswith("\\") and (len(line) - len(line.rstrip("\\"))) % 2:
        line = line[:-1]
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise _refused(entry, str(error)) from error
    return [KEPT.sub(lambda match: kept[int(match[1])], word) for word in words]


def _without_json(text: str, kept: list[str]) -> str:
    parts, start, lost = [], 0, 0
    for match in JSON_START.finditer(text):
        if match.start() < start:
            continue
        end, read = _json_end(text, match.start())
        if end is None:
            lost += read
            if lost > MOST_LOST:
                raise _refused(text, "too many brackets that belong to no JSON")
            continue
        parts.append(f"{text[start : match.start()]}\x1f{len(kept)}\x1f")
        kept.append(text[match.start() : end])
        start = end
    return "".join((*parts, text[start:]))


def _json_end(text: str, start: int) -> tuple[int | None, int]:
    """The end of JSON that begins at `start` (None = not JSON), and the characters read in vain.

    After `=` the closing bracket is the end, even of invalid JSON; elsewhere it must be valid.
    """
    try:
        return JSONDecoder().raw_decode(text, start)[1], 0
    except RecursionError:
        raise _refused(text, "nested too deep") from None
    except JSONDecodeError as error:
        if text[start - 1] == "=":
            return _bracket_end(text, start), 0
        # The decoder reports an unterminated string at its start.
        end = len(text) if error.msg.startswith("Unterminated") else error.pos
        return None, end - start


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
    """The words with each `--k = v`, `--k =v` and `--k= v` joined into one."""
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


def _refused(entry: str, why: str) -> Failure:
    return Failure(Cause.BAD_SPEC, f"engine.args: {clipped(entry, LONGEST_SHOWN)}: {why}")
