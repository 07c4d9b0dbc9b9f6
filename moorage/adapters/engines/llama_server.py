"""`moorage-llama-server`: the server in the xllamacpp wheel behind llama-server's command line.

    moorage-llama-server --model FILE [--host ADDRESS] [--port PORT] [OPTION [VALUE]]...
    moorage-llama-server --help | --version

The wheel has the whole server, but no program. The API key comes in `LLAMA_API_KEY`, never in an
option.
"""

import json
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any

from moorage.adapters.engines.llama_cpp_parser import LlamaServerParser
from moorage.adapters.engines.schema_store import shipped_schema, shipped_schemas
from moorage.engines.llama_cpp.options import build_of
from moorage.engines.llama_cpp.wheel import FIELDS
from moorage.engines.schema.argument import Argument, Schema
from moorage.engines.schema.plain_words import plain_options
from moorage.spec import EngineName

API_KEY = "LLAMA_API_KEY"
NOTE = "llama-server's options; those that the wheel's server lacks are refused."
USAGE_ERROR, NO_START = 2, 1

WORDS = {"on": "ENABLED", "off": "DISABLED"}
"""Names in enumerations for the choices `on` and `off`."""

LEVELS = {"on": 1, "off": 0, "auto": -1, "all": 999}
"""Numbers for the words that numeric options accept."""


def main() -> None:
    """Serve until a signal ends the process."""
    import xllamacpp  # noqa: PLC0415  (an extra)

    if text := answer(sys.argv[1:], xllamacpp.__version__):
        print(text)
        return
    params = xllamacpp.CommonParams()
    try:
        for name, argument, value in given(sys.argv[1:], schema_of(xllamacpp.__version__)):
            put(params, argument, name, value)
    except ValueError as error:
        sys.exit(_failed(f"error: invalid argument: {error}", USAGE_ERROR))
    if key := os.environ.get(API_KEY):
        params.api_keys = [key]
    try:
        server = xllamacpp.Server(params)
    except RuntimeError as error:
        sys.exit(_failed(f"error: {error}", NO_START))
    print(f"listening on {server.listening_address}", flush=True)
    threading.Event().wait()


def answer(words: Sequence[str], version: str) -> str:
    """Text that `--version` or `--help` prints, like llama-server; empty for other command lines.

    The help text is llama-server's own, from the parser in the wheel.
    """
    if words == ["--version"]:
        return f"version: {build_of(version)} (xllamacpp {version})"
    return f"{NOTE}\n\n{LlamaServerParser().help()}" if words == ["--help"] else ""


def schema_of(version: str) -> Schema:
    """Arguments of a wheel; a wheel older than all known schemas gets the newest schema."""
    engine = EngineName.LLAMA_CPP
    return shipped_schema(build_of(version), engine) or shipped_schemas(engine)[0]


def given(words: Sequence[str], schema: Schema) -> Iterator[tuple[str, Argument, str]]:
    """The options of a command line, with their values.

    Raises:
        ValueError: For an unknown option, or an option without its value.
    """
    for option, argument, values in plain_options(words, schema):
        if argument is None or fields_of(argument) is None:
            raise ValueError(option)
        if argument.takes_value and not values:
            raise ValueError(f"{option} needs a value")
        yield option, argument, " ".join(values)


def fields_of(argument: Argument) -> str | None:
    """Parameter fields that an option sets; None = the wheel has no field for it."""
    return next((FIELDS[name] for name in argument.options if name in FIELDS), None)


def put(params: Any, argument: Argument, name: str, value: str) -> None:
    """Set the parameter fields of an option.

    Raises:
        ValueError: When the value does not have the field's type.
    """
    for field in (fields_of(argument) or "").split():
        path, _, fixed = field.removeprefix("-").partition("=")
        *outer, last = path.split(".")
        owner = params
        for step in outer:
            owner = getattr(owner, step)
        before = getattr(owner, last)
        if not argument.takes_value and not fixed:
            setattr(owner, last, _is_on(name) is not field.startswith("-"))
            continue
        try:
            setattr(owner, last, _read(before, fixed or value))
        except (KeyError, StopIteration, ValueError):
            raise ValueError(f"{name} {value}") from None
    if name == "--rope-scale":
        params.rope_freq_scale = 1 / float(value)


def _is_on(name: str) -> bool:
    return not name.startswith(("--no-", "-n"))


def _read(before: Any, text: str) -> Any:
    """Convert a text to the type of a field's current value."""
    if isinstance(before, bool):
        return {"on": True, "off": False}[text]
    if isinstance(before, Enum):
        return _member(type(before), text)
    if isinstance(before, int):
        return LEVELS[text] if text in LEVELS else int(text)
    if isinstance(before, float):
        return float(text)
    if isinstance(before, dict):
        return {key: json.dumps(value) for key, value in json.loads(text).items()}
    if isinstance(before, set):
        return set(text.split(","))
    if isinstance(before, list):
        parts = text.split(",")
        if not before:
            return [_adapter(part) for part in parts]
        read = [_read(before[0], part) for part in parts]
        # The shares of accelerators have a place for each that there could be.
        return [*read, *before[len(read) :]] if isinstance(before[0], float) else read
    return text


def _adapter(text: str) -> Any:
    """An adapter and its scale; the list of adapters is the only list that is empty at first."""
    import xllamacpp  # noqa: PLC0415  (an extra)

    path, _, scale = text.rpartition(":")
    return xllamacpp.CommonAdapterLoraInfo(path, float(scale))


def _member(kind: type[Enum], text: str) -> Enum:
    """Member by its number or by the end of its name (`mean`: `LLAMA_POOLING_TYPE_MEAN`)."""
    if text.lstrip("-").isdigit():
        return kind(int(text))
    ending = f"_{WORDS.get(text, text.upper().replace('-', '_'))}"
    return next(member for name, member in kind.__members__.items() if name.endswith(ending))


def _failed(message: str, code: int) -> int:
    print(message, file=sys.stderr, flush=True)
    return code


if __name__ == "__main__":
    main()
