"""Writes the reference of spec, fleet file and policy from the models' own descriptions."""

from __future__ import annotations

import sys
from pathlib import Path

from pydantic import BaseModel

from moorage.common.failures import Cause
from moorage.engines.packages import PACKAGES
from moorage.engines.registry import ENGINES
from moorage.reports.field_reference import FILES, fields_of, models_in
from moorage.spec import Mode

HEAD = """# Reference: what users write

Made by `make docs` from `moorage/spec/`, `moorage/inventory/fleet.py`, `moorage/policy/` and
`moorage/engines/`.
Do not edit by hand.

Sizes are whole bytes, or texts such as `16GiB` or `1.5 MB`: a number and one of the units `B`,
`kB`, `KB`, `MB`, `GB`, `TB`, `PB`, `KiB`, `MiB`, `GiB`, `TiB`, `PiB`; 1 PiB at most. Unknown keys
are refused.

A file is YAML 1.2 in UTF-8, one document in a plain file: at most 256 KiB, 20,000 keys and values
(aliases and merge keys followed), 500 aliases, 32 levels, and no tags but those of YAML's own plain
types. Numbers are finite and at most 2^63 - 1. Texts hold no control characters and nothing that
overrides the direction of writing. Line feeds and tabs are allowed in prompts, `expect`,
`engine.args`, `command`, `entrypoint`, `env`, in `application` and in the fleet's `run_command` and
`entrypoint`. A text has at most 100,000 characters, one of `engine.args` 32,768.
"""


def reference() -> str:
    """The whole page."""
    parts = [HEAD]
    for title, model in FILES.values():
        parts.append(f"## {title}\n")
        parts += [_section(path, part) for path, part in models_in(model)]
    parts += [_engines(), _failures()]
    return "\n".join(parts)


def _engines() -> str:
    """What each engine serves, loads and runs on."""
    lines = [
        "## Engines\n",
        "| `engine.name` | modes | loads | accelerators | over several hosts | as packages |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, engine in ENGINES.items():
        modes = [mode.value for mode in Mode if mode in engine.modes]
        modes += [f"{mode} with `engine.image`" for mode in sorted(engine.modes_of_own_images)]
        kinds = [*sorted(engine.accelerator_types), *["cpu"] * engine.runs_on_cpu]
        loads = sorted(engine.formats) if engine.predictable else ["anything"]
        spans, packed = engine.spans_hosts, name in PACKAGES
        cells = (", ".join(modes), ", ".join(loads), ", ".join(kinds), *map(_yes, (spans, packed)))
        lines.append(_row((f"`{name}`", *cells)))
    return "\n".join(lines) + "\n"


def _yes(true: bool) -> str:
    return "yes" if true else "-"


def _section(path: str, model: type[BaseModel]) -> str:
    lines = [f"### `{path or '(top level)'}`\n", f"{(model.__doc__ or '').strip()}\n"]
    lines += ["| field | type | default | meaning |", "| --- | --- | --- | --- |"]
    for name, field in fields_of(model).items():
        lines.append(_row((f"`{name}`", field.kind, field.default, field.text)))
    return "\n".join(lines) + "\n"


def _row(cells: tuple[str, ...]) -> str:
    escaped = [cell.replace("|", "\\|") for cell in cells]
    return f"| {' | '.join(escaped)} |"


def _failures() -> str:
    lines = [
        "## Failures and exit codes\n",
        "| cause | exit code | tried again | meaning |",
        "| --- | --- | --- | --- |",
    ]
    for cause in Cause:
        again = "yes" if cause.retryable else "no"
        lines.append(f"| `{cause}` | {int(cause.exit_code)} | {again} | {cause.summary} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference())
