"""The reference of spec, fleet file and policy, from the models' own descriptions."""

from __future__ import annotations

from inspect import cleandoc

from pydantic import BaseModel

from moorage.engines.packages import PACKAGES
from moorage.engines.registry import ENGINES
from moorage.reports.field_reference import FILES, fields_of, models_in
from moorage.spec import Mode
from scripts.reference.tables import table

SPEC_HEAD = """# Reference: the spec of a model

Made by `make docs` from `moorage/spec/` and `moorage/engines/`. Do not edit by hand.

`moorage explain FIELD` prints the same on the terminal. Editors that know YAML check a file and
complete it by [its schema](schemas/spec.json): [schemas for editors](#schemas-for-editors).

## What every file may hold

These rules hold for the [fleet file](fleet.md) and the [policy](policy-reference.md) too.

Sizes are whole bytes, or texts such as `16GiB` or `1.5 MB`: a number and one of the units `B`,
`kB`, `KB`, `MB`, `GB`, `TB`, `PB`, `KiB`, `MiB`, `GiB`, `TiB`, `PiB`; 1 PiB at most. Unknown keys
are refused.

A file is YAML 1.2 in UTF-8, one document in a plain file: at most 256 KiB, 20,000 keys and values
(aliases and merge keys followed), 500 aliases, 32 levels, and no tags but those of YAML's own plain
types. Numbers are finite and at most 2^63 - 1. Texts hold no control characters and nothing that
overrides the direction of writing. Line feeds and tabs are allowed in prompts, `expect`,
`engine.args`, `command`, `entrypoint`, `env`, in `application` and in the fleet's `run_command` and
`entrypoint`. A text has at most 100,000 characters, one of `engine.args` 32,768.

## Schemas for editors

Editors with yaml-language-server (VS Code with the YAML extension, Neovim, Helix, ...) check and
complete a file whose first line names its schema, and explain a field under the pointer:

```yaml
# yaml-language-server: $schema=.schemas/spec.json
```

`moorage init` writes this line, and the schemas of all three files into `deployments/.schemas/`:
beside the specs they need no network, and whoever clones the repository has them. Every `moorage
init` renews them; `moorage explain spec --json-schema` prints one (also `fleet`, `policy`). A
schema knows fields, types, words and ranges. What several fields mean together, `moorage plan`
checks.
"""

FLEET_HEAD = """# Reference: the fleet file

Made by `make docs` from `moorage/inventory/fleet.py`. Do not edit by hand.

`deployments/fleet.yaml` names the hosts that models are placed on; without it they are placed on
this machine. [Hosts](hosts.md) explains how they are reached. `moorage explain fleet.FIELD` prints
the same on the terminal, and [what every file may hold](spec.md#what-every-file-may-hold) counts
here too. In editors: `# yaml-language-server: $schema=.schemas/fleet.json`
([fleet.json](schemas/fleet.json), [more](spec.md#schemas-for-editors)).
"""

POLICY_HEAD = """# Reference: the policy file

Made by `make docs` from `moorage/policy/`. Do not edit by hand.

[The policy of a site](policy.md) explains the rules and shows the whole file. `moorage explain
policy.FIELD` prints the same on the terminal, and
[what every file may hold](spec.md#what-every-file-may-hold) counts here too. In editors:
`# yaml-language-server: $schema=.schemas/policy.json` ([policy.json](schemas/policy.json),
[more](spec.md#schemas-for-editors)).
"""


def spec_reference() -> str:
    """The page of the spec, with the table of engines."""
    return "\n".join([SPEC_HEAD, *_sections("spec"), _engines()])


def fleet_reference() -> str:
    """The page of the fleet file."""
    return "\n".join([FLEET_HEAD, *_sections("fleet")])


def policy_reference() -> str:
    """The page of the policy."""
    return "\n".join([POLICY_HEAD, *_sections("policy")])


def _sections(file: str) -> list[str]:
    title, model = FILES[file]
    return [f"## {title}\n", *(_section(path, part) for path, part in models_in(model))]


def _section(path: str, model: type[BaseModel]) -> str:
    fields = fields_of(model).items()
    rows = [(f"`{name}`", field.kind, field.default, field.text) for name, field in fields]
    shown = table(("field", "type", "default", "meaning"), rows)
    return f"### `{path or '(top level)'}`\n\n{cleandoc(model.__doc__ or '')}\n\n{shown}"


def _engines() -> str:
    """The table of each engine's modes, formats and accelerators."""
    header = (
        "`engine.name`",
        "modes",
        "loads",
        "accelerators",
        "over several hosts",
        "as packages",
    )
    rows = []
    for name, engine in ENGINES.items():
        modes = [mode.value for mode in Mode if mode in engine.modes]
        modes += [f"{mode} with `engine.image`" for mode in sorted(engine.modes_of_own_images)]
        kinds = [*sorted(engine.accelerator_types), *["cpu"] * engine.runs_on_cpu]
        loads = sorted(engine.formats) if engine.predictable else ["anything"]
        spans, packed = engine.spans_hosts, name in PACKAGES
        cells = (", ".join(modes), ", ".join(loads), ", ".join(kinds), *map(_yes, (spans, packed)))
        rows.append((f"`{name}`", *cells))
    return f"## Engines\n\n{table(header, rows)}"


def _yes(true: bool) -> str:
    return "yes" if true else "-"
