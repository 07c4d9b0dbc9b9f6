"""Options of the engine as the peer reads them out of what the user wrote."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from json import JSONDecodeError, JSONDecoder

OFF = frozenset({"0", "false", "no", "off", "f", "n"})
"""Values that switch a boolean option off; anything else switches it on."""

JSON_START = re.compile(r"=(?=[{\[])")
CONTINUATION = re.compile(r"\\\r?\n")


class Parameters:
    """Options by name, without dashes: `--k=v`, `--k v`, `-k v`, two entries, or a pasted line.

    Names are compared as they are written: `--tensor_parallel_size` is another option.

    Raises:
        ValueError: When a quote is not closed.
    """

    def __init__(self, entries: Sequence[str]) -> None:
        self._pairs = tuple(_pairs(_words(entries)))

    def value(self, *names: str) -> str | None:
        """Value of the first of these options that has one."""
        return next((v for name, v in self._pairs if name in names and v is not None), None)

    def number(self, *names: str) -> int | None:
        """The same as a whole number; None when it is not one."""
        try:
            return int(self.value(*names) or "")
        except ValueError:
            return None

    def switch(self, name: str) -> bool:
        """Whether a boolean option is on; its first occurrence counts."""
        for found, value in self._pairs:
            if found == name:
                return value is None or value.lower() not in OFF
        return False


def _words(entries: Sequence[str]) -> list[str]:
    words: list[str] = []
    for entry in map(str.strip, entries):
        if entry and _is_option(entry.split(None, 1)[0]):
            words.extend(_split(entry))
        elif entry:
            words.append(entry)
    return words


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Each option with its first value."""
    for word, following in zip_longest(words, words[1:]):
        if not _is_option(word):
            continue
        name, equals, value = word.partition("=")
        if equals:
            yield name.lstrip("-"), value
        else:
            bare = following is None or _is_option(following)
            yield name.lstrip("-"), None if bare else following


def _is_option(word: str) -> bool:
    if len(word) < 2 or not word.startswith("-") or word == "--":
        return False
    try:
        float(word)
    except ValueError:
        return True
    return False


def _split(line: str) -> list[str]:
    """Split as a shell would, but keep JSON after an equals sign as it is."""
    masked, kept = _mask(line)
    masked = CONTINUATION.sub(" ", masked).rstrip()
    if (len(masked) - len(masked.rstrip("\\"))) % 2:
        masked = masked[:-1]
    return [re.sub("\0(\\d+)\0", lambda m: kept[int(m[1])], word) for word in shlex.split(masked)]


def _mask(line: str) -> tuple[str, list[str]]:
    kept: list[str] = []
    masked, end = "", 0
    for start in (match.end() for match in JSON_START.finditer(line)):
        if start < end:
            continue
        try:
            _, stop = JSONDecoder().raw_decode(line, start)
        except (JSONDecodeError, RecursionError):
            continue
        masked += f"{line[end:start]}\0{len(kept)}\0"
        kept.append(line[start:stop])
        end = stop
    return masked + line[end:], kept
