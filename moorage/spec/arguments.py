"""The arguments of an engine: parsed once into a value with lookups by option."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from moorage.common.failures import Cause, Failure
from moorage.common.strict_json import JsonError, JsonLimits, decode
from moorage.common.values import LARGEST, Value
from moorage.spec.option_names import SECOND_NAMES, SHORT_NAMES, SHORTEST
from moorage.spec.tokenize import is_option, user_tokens

MULTIPLES = {
    **{"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12},
    **{"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40},
}
"""Factors that vLLM applies for a letter after a number (`utils/argparse_utils.py`)."""

WRITTEN = JsonLimits(size=128 * 1024, entries=10_000, constants=True)
"""Limits of JSON in an argument."""

NUMBER = re.compile(r"(\d+(?:\.\d+)?)([kKmMgGtT]?)")


class Option(Value):
    """One option of a command line, with its values."""

    name: str
    """Its full name, with any keys after it: `--hf-overrides.rope_theta`."""

    written: str
    """The name as the user writes it: `--hf_over.rope_theta`."""

    values: tuple[str, ...] = ()


class EngineArguments(Value):
    """Arguments as vLLM parses them. `spec.engine.arguments` has those of a spec.

    Options are looked up by their full long name, in whatever form the user writes them: `-tp 2`,
    `--tensor_parallel_size=2` and `--tensor-par 2` are all `--tensor-parallel-size`. Of a repeated
    option, the last one counts.
    """

    words: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()

    def has(self, name: str) -> bool:
        """Whether the arguments contain the option itself: without keys, and not as `--no-`."""
        return any(option.name == name for option in self.options)

    def states(self, name: str, *others: str) -> bool:
        """Whether the user sets an option: under any of its names, by key, or in its `--no-` form.

        `--speculative-config.method` sets `--speculative-config`, and `--no-omni` sets `--omni`.
        """
        wanted = {name, *others, _negated(name)}
        return any(option.name.partition(".")[0] in wanted for option in self.options)

    def value(self, *names: str) -> str | None:
        """The value of an option under any of these names; empty = none, None = no such option."""
        values = self.values(*names)
        return None if values is None else next(iter(values), "")

    def values(self, *names: str) -> tuple[str, ...] | None:
        """All values of an option that takes several; None when the option is absent."""
        found = [option.values for option in self.options if option.name in names]
        return found[-1] if found else None

    def switch(self, name: str) -> bool | None:
        """Whether an option is switched on (`--name`) or off (`--no-name`); None without it."""
        both = (name, _negated(name))
        found = [option.name == name for option in self.options if option.name in both]
        return found[-1] if found else None

    def whole_number(self, *names: str) -> int | None:
        """The number of an option in vLLM's forms, such as `8192`, `8K` or `8.192k`; None = absent.

        Raises:
            Failure: `BAD_SPEC` when the value is not a number, or too large.
        """
        value = self.value(*names)
        if value is None:
            return None
        number, where = _number(value), f"engine.args: {names[0]}"
        if number is None:
            raise Failure(Cause.BAD_SPEC, f"{where}: {value[:60]!r} is not a number")
        if number > LARGEST:
            raise Failure(Cause.BAD_SPEC, f"{where}: {value[:60]} is more than {LARGEST}")
        return number

    def json_object(self, name: str) -> dict[str, Any] | None:
        """The JSON object of an option, as a whole or by keys (`--name.key value`); None = absent.

        Where keys are present, only they count: vLLM collects them into a JSON object after all
        other arguments (`utils/argparse_utils.py:FlexibleArgumentParser.parse_args`).

        Raises:
            Failure: `BAD_SPEC` when the value is not a JSON object.
        """
        whole: dict[str, Any] | None = None
        keyed: dict[str, Any] = {}
        for option in self.options:
            own, _, path = option.name.partition(".")
            if own != name:
                continue
            value = _json(option.values[0]) if option.values else True
            if path:
                keyed = _merged(keyed, path.split("."), value)
            elif isinstance(value, dict):
                whole = value
            else:
                detail = f"engine.args: {name}: not a JSON object: {repr(value)[:60]}"
                raise Failure(Cause.BAD_SPEC, detail)
        return keyed or whole


@lru_cache(maxsize=64)
def parse_entries(entries: tuple[str, ...]) -> EngineArguments:
    """Parse the entries of `engine.args`; each entry may be a whole line.

    Raises:
        Failure: `BAD_SPEC` when a quote is not closed, or an entry is too long or nested too deep.
    """
    return parse_words(user_tokens(entries))


def parse_words(words: Sequence[str]) -> EngineArguments:
    """Parse the words of a command line."""
    return EngineArguments(words=tuple(words), options=tuple(_options(words)))


@lru_cache(maxsize=4096)
def full_name(written: str) -> str:
    """The full long name of an option; an unknown option is returned unchanged.

    vLLM's parser accepts unambiguous abbreviations. A lookup of `--gpu-memory-utilization` has to
    find `--gpu-memory-util` too: else the engine would use more memory than the claim. `written`
    has its dashes, and neither value nor keys.
    """
    found = [written]
    if written not in SHORTEST and written.startswith("--"):
        found = [
            full
            for full, shortest in SHORTEST.items()
            if written.startswith(shortest) and full.startswith(written)
        ]
    name = found[0] if len(found) == 1 else written
    return SECOND_NAMES.get(name, name)


def _options(words: Sequence[str]) -> Iterator[Option]:
    start = None
    for index, word in enumerate((*words, "--")):
        if word != "--" and not is_option(word):
            continue
        if start is not None:
            written, equals, value = words[start].partition("=")
            own = (value,) if equals else ()
            values = (*own, *words[start + 1 : index])
            yield Option(name=_name(written), written=written, values=values)
        start = index


def _name(written: str) -> str:
    option, dot, path = written.partition(".")
    name = full_name(option.replace("_", "-"))
    return SHORT_NAMES.get(name, name) + dot + path


def _negated(name: str) -> str:
    return name.replace("--", "--no-", 1)


def _json(text: str) -> Any:
    try:
        return decode(text, WRITTEN)
    except JsonError:
        number = _number(text)
        return text if number is None else number


def _number(text: str) -> int | None:
    """The value of a number with an optional letter after it; None = not such a number."""
    match = NUMBER.fullmatch(text.strip())
    if not match or (match[2].isupper() and "." in match[1]):
        return None
    return int(float(match[1]) * MULTIPLES.get(match[2], 1))


def _merged(content: dict[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    key, *rest = path
    if not rest and key.endswith("+"):
        there = content.get(key[:-1])
        more = str(value).split(",")
        return {**content, key[:-1]: [*(there if isinstance(there, list) else ()), *more]}
    if not rest:
        return {**content, key: value}
    below = content.get(key)
    return {**content, key: _merged(below if isinstance(below, dict) else {}, rest, value)}
