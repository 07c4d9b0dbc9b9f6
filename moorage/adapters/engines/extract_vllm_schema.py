"""Write the arguments of the vLLM that this Python has as JSON, one argument a line.

Needs vLLM and the standard library, no GPU and no moorage, so that it runs inside an image too:

    PYTHON extract_vllm_schema.py > VERSION.json
    docker run --rm -i --entrypoint python3 IMAGE - < extract_vllm_schema.py > VERSION.json

vLLM's own parser is built and described. What a type accepts is found out by trying it, since types
are unnamed functions that differ between versions. Help texts are left out, but for what they say
about a deprecation: the version that drops the argument, and what takes its place.
"""

import argparse
import dataclasses
import importlib
import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

PARSERS = (
    "vllm.entrypoints.common.cli_args",
    "vllm.entrypoints.launchers.cli_args",
    "vllm.entrypoints.openai.cli_args",
)
"""Modules that had `make_arg_parser`, the newest first."""

FLEXIBLE = ("vllm.utils.argparse_utils", "vllm.utils")
"""Modules that had `FlexibleArgumentParser`, where the module above does not name it."""

KINDS = (
    # For each of WORDS, whether a type accepts it.
    ("integer", "01000000"),
    ("number", "01100000"),
    ("readable-integer", "01010000"),
    ("readable-integer-or-auto", "01011000"),
    ("json", "01100110"),
    ("object", "00000100"),
    ("text-or-object", "11111110"),
    ("text", "11111111"),
)
WORDS = ("word", "1", "1.5", "32k", "auto", "{}", "[]", "{x}")
STRANGE = "moorage_probe"
REFUSALS = (argparse.ArgumentTypeError, TypeError, ValueError)
DEPRECATED = re.compile(r"(?i)^\W*deprecated|--[\w-]+ is deprecated|has been replaced by")
GONE_IN = re.compile(r"removed (?:in|after) (?:vLLM )?v?(\d+\.\d+(?:\.\d+)?)")
INSTEAD = re.compile(
    r"(?:[Uu]se|replaced by|favor of) `*"
    r"(--[a-z][\w.-]*\w|[a-z][a-z0-9]*(?:[_-][a-z0-9]+)+(?:[.]\w+)*)"
)


def main() -> None:
    """Describe the parser on standard output."""
    # Something prints while vLLM is imported; only the schema goes to standard output.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    os.environ["VLLM_TARGET_DEVICE"] = "cpu"
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    # vLLM reads this: without it the help texts stay empty.
    sys.argv = ["vllm", "--help=all"]
    parser = build_parser()
    import vllm  # noqa: PLC0415

    marked: set[Any] = getattr(parser, "_deprecated", set())
    rows = [describe(action, marked) for action in parser._actions if action.option_strings]
    answer.write(document("vllm", vllm.__version__.partition("+")[0], rows))
    answer.flush()


def document(engine: str, version: str, rows: list[dict[str, Any]], **more: Any) -> str:
    """The schema as JSON, one argument a line, with more of its fields before them."""
    head = {"format": 1, "engine": engine, "version": version, **more}
    ordered = sorted(rows, key=lambda row: str(row["options"][0]))
    lines = ",\n".join(json.dumps(row, sort_keys=True) for row in ordered)
    return json.dumps(head)[:-1] + ', "arguments": [\n' + lines + "\n]}\n"


def build_parser() -> argparse.ArgumentParser:
    """vLLM's parser of `vllm serve`."""
    use_cpu()
    module = first_with(PARSERS, "make_arg_parser")
    flexible = getattr(module, "FlexibleArgumentParser", None)
    if flexible is None:
        flexible = first_with(FLEXIBLE, "FlexibleArgumentParser").FlexibleArgumentParser
    made: argparse.ArgumentParser = module.make_arg_parser(flexible())
    return made


def use_cpu() -> None:
    """Where neither variable nor hardware tells a platform, say that it is the CPU."""
    import vllm.platforms as platforms  # noqa: PLC0415

    if getattr(platforms.current_platform, "device_type", ""):
        return
    from vllm.platforms.cpu import CpuPlatform  # noqa: PLC0415

    platforms.current_platform = CpuPlatform()


def first_with(modules: tuple[str, ...], name: str) -> Any:
    """The first module that is there and has a name; without one, the program ends."""
    reasons = []
    for module in modules:
        try:
            found = importlib.import_module(module)
        except ModuleNotFoundError as error:
            reasons.append(str(error))
            continue
        if hasattr(found, name):
            return found
    sys.exit(f"{name} was not found: {'; '.join(reasons) or ', '.join(modules)}")


def describe(action: argparse.Action, marked: set[Any]) -> dict[str, Any]:
    """One argument. Its first long name that is not the negative comes first."""
    names = action.option_strings
    first = sorted(names, key=lambda name: (not name.startswith("--"), name.startswith("--no-")))
    row: dict[str, Any] = {"options": first, **value_of(action)}
    if action.required:
        row["required"] = True
    text = " ".join((action.help or "").split())
    if DEPRECATED.search(text) or action in marked or getattr(action, "deprecated", False):
        row["deprecated"] = deprecation(text)
    return row


def value_of(action: argparse.Action) -> dict[str, Any]:
    """What an argument takes: kind, number and choices of its values."""
    if isinstance(action, argparse._HelpAction):
        return {"kind": "help"}
    if action.nargs == 0:
        return {"kind": "switch"}
    row: dict[str, Any] = {"kind": kind_of(action)}
    if action.nargs is not None:
        row["values"] = action.nargs
    if row["kind"] != "text" and accepts(action.type, "None"):
        row["none"] = True
    if action.choices is not None:
        row.update(choices_of(action))
    if row["kind"] == "object" and (keys := keys_of(action.type)):
        row["keys"] = keys
    return row


def accepts(convert: Any, word: str) -> bool:
    """Whether a type accepts a word."""
    try:
        if convert is not None:
            convert(word)
    except REFUSALS:
        return False
    return True


def kind_of(action: argparse.Action) -> str:
    """The kind that accepts the same of WORDS as this type."""
    if type(action).__name__ == "LoRAParserAction":
        return "adapters"
    answers = "".join(str(int(accepts(action.type, word))) for word in WORDS)
    # An unknown type counts as text, so that its values are not refused.
    return next((kind for kind, pattern in KINDS if pattern == answers), "text")


def choices_of(action: argparse.Action) -> dict[str, Any]:
    """The only values allowed, and how loosely they may be written."""
    convert: Any = action.type or str
    every = list(action.choices or ())
    texts = [item for item in every if item is not None]

    def allows(word: str) -> bool:
        try:
            return convert(word) in every
        except REFUSALS:
            return False

    row: dict[str, Any] = {"choices": sorted(getattr(item, "value", item) for item in texts)}
    words = [item for item in row["choices"] if isinstance(item, str)]
    if words and all(allows(w.lower()) and allows(w.upper()) for w in words):
        row["any_case"] = True
    if None in every:
        row["none"] = True
    return row


def keys_of(convert: Any) -> list[str]:
    """Keys of a configuration that refuses all others."""
    try:
        convert(json.dumps({STRANGE: 0}))
        return []
    except REFUSALS as error:
        if STRANGE not in str(error):
            return []
    found = next(filter(dataclasses.is_dataclass, kept_by(convert)), None)
    return sorted(field.name for field in dataclasses.fields(found) if field.init) if found else []


def kept_by(function: Any) -> Iterator[Any]:
    """What a function holds on to: default values, variables around it, and so on within them."""
    defaults = getattr(function, "__defaults__", None) or ()
    cells = getattr(function, "__closure__", None) or ()
    for kept in (*defaults, *(cell.cell_contents for cell in cells)):
        yield kept
        if callable(kept) and not isinstance(kept, type):
            yield from kept_by(kept)


def deprecation(text: str) -> dict[str, str]:
    """What a help text says about the end of its argument."""
    found = {"gone_in": GONE_IN.search(text), "instead": INSTEAD.search(text)}
    facts = {name: match[1] for name, match in found.items() if match}
    if "instead" in facts and not facts["instead"].startswith("--"):
        facts["instead"] = "--" + facts["instead"].replace("_", "-")
    return facts


if __name__ == "__main__":
    main()
