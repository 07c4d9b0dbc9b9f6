"""The arguments of an engine: read once into a value, which answers what is stated in them."""

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
"""What vLLM makes of a letter behind a number (`utils/argparse_utils.py`)."""

WRITTEN = JsonLimits(size=128 * 1024, entries=10_000, constants=True)
"""What JSON in an argument may be at most."""

NUMBER = re.compile(r"(\d+(?:\.\d+)?)([kKmMgGtT]?)")


class Option(Value):
    """One option of a command line, and the words that belong to it."""

    name: str
    """Its full name, with the keys behind it: `--hf-overrides.rope_theta`."""

    written: str
    """The name as the user writes it: `--hf_over.rope_theta`."""

    values: tuple[str, ...] = ()


class EngineArguments(Value):
    """Arguments as vLLM reads them. `spec.engine.arguments` has those of a spec.

    Options are found by their full long name, however they are written: `-tp 2`,
    `--tensor_parallel_size=2` and `--tensor-par 2` are all `--tensor-parallel-size`. Where an
    option is repeated, the last one counts.
    """

    words: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()

    def has(self, name: str) -> bool:
        """Whether an option stands here itself: without keys, and not its `--no-` form."""
        return any(option.name == name for option in self.options)

    def states(self, name: str, *others: str) -> bool:
        """Whether the user decides about an option: under any of its names, by key, or against it.

        `--speculative-config.method` decides about `--speculative-config`, and `--no-omni` about
        `--omni`.
        """
        wanted = {name, *others, _negated(name)}
        return any(option.name.partition(".")[0] in wanted for option in self.options)

    def value(self, *names: str) -> str | None:
        """The value of an option under any of these names.

        Returns:
            Its value, empty when it has none; None when it is not there.
        """
        values = self.values(*names)
        return None if values is None else next(iter(values), "")

    def values(self, *names: str) -> tuple[str, ...] | None:
        """All values of an option that takes several; None when it is not there."""
        found = [option.values for option in self.options if option.name in names]
        return found[-1] if found else None

    def switch(self, name: str) -> bool | None:
        """Whether an option is switched on (`--name`) or off (`--no-name`); None without it."""
        both = (name, _negated(name))
        found = [option.name == name for option in self.options if option.name in both]
        return found[-1] if found else None

    def whole_number(self, *names: str) -> int | None:
        """The value of an option as vLLM reads numbers: `8192`, `8K` and `8.192k`.

        Returns:
            None when it is not there.

        Raises:
            Failure: `BAD_SPEC` when it is no number.
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
        """The value of an option that takes JSON, whole or by keys (`--name.key value`).

        Where there are keys, they alone count: vLLM puts them behind all the rest, as JSON of
        their own (`utils/argparse_utils.py:FlexibleArgumentParser.parse_args`).

        Returns:
            None when it is not there.

        Raises:
            Failure: `BAD_SPEC` when it is no JSON object.
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
                excerpt = repr(value)[:60]
                raise Failure(Cause.BAD_SPEC, f"engine.args: {name}: not a JSON object: {excerpt}")
        return keyed or whole


@lru_cache(maxsize=64)
def parse_entries(entries: tuple[str, ...]) -> EngineArguments:
    """Read entries as users write them in `engine.args`, of which each may be a whole line.

    Raises:
        Failure: `BAD_SPEC` when a quote is not closed, or an entry is too long or too deep.
    """
    return parse_words(user_tokens(entries))


def parse_words(words: Sequence[str]) -> EngineArguments:
    """Read the words of a command line."""
    return EngineArguments(words=tuple(words), options=tuple(_options(words)))


@lru_cache(maxsize=4096)
def full_name(written: str) -> str:
    """The long name under which an option is looked for; an unknown one stays as it is.

    vLLM's parser takes an option that is cut short, as long as no other begins so. Whoever looks
    for `--gpu-memory-utilization` has to find `--gpu-memory-util` too: else the engine would take
    more than what was claimed. It is `written` with its dashes, without value and keys.
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
    """A number that may have a letter behind it; None = it is none."""
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
