"""The reference of settings, from the settings' own descriptions."""

from __future__ import annotations

from pydantic import AliasChoices
from pydantic.fields import FieldInfo

from moorage.adapters.system.settings import PREFIX, Settings
from scripts.reference.tables import table

HEAD = """# Reference: settings and the home

Made by `make docs` from `moorage/adapters/system/settings.py`. Do not edit by hand.

## Variables

Commands, `moorage serve` and workers read these variables. An empty one counts as none. Times are
seconds.

"""

PREFECT = (
    (
        "PREFECT_API_URL",
        "none",
        "The Prefect server. Without it, commands start one and"
        " [keep it](prefect.md#the-server-that-commands-keep).",
    ),
    (
        "PREFECT_HOME",
        "`~/.prefect`",
        "Prefect's own files, and the database of a server that commands start.",
    ),
    (
        "PREFECT_API_AUTH_STRING",
        "the login in the home",
        "The login that commands and workers send, `user:password`.",
    ),
    (
        "PREFECT_SERVER_API_AUTH_STRING",
        "the login in the home",
        "The login that a server requires.",
    ),
    ("HF_TOKEN", "none", "The hub's token, where the spec names no other."),
)
"""Variables of other programs: name, default, meaning."""

HOME = (
    ("`ledger.db`", "[The ledger](ledger.md): releases, claims, records."),
    ("`models/`, `adapters/`", "The [stores](sources.md) of models and of LoRA adapters."),
    ("`loaded/`", "Adapters that are loaded into serving models."),
    ("`cache/`", "Caches of engines for their next start, by model, such as compiled kernels."),
    ("`configs/`", "Configurations of models, as transformers has completed them."),
    ("`engines/`", "[Installed engines](engines.md#installing), an environment for each version."),
    ("`schemas/`", "Arguments of engines that were asked for them."),
    ("`run/`", "Logs of engines that run as processes."),
    ("`keys/`", "API keys of models, where no Prefect API is configured."),
    ("`api/`", "The login of the Prefect server, and the server that commands keep."),
    ("`gateways/`", "Configuration and access logs of [gateways](gateway.md)."),
    ("`locks/`", "Locks that the flows of this machine share."),
)
"""Files and folders of the home."""

HOME_HEAD = """
## What the home holds

Ledger, logs, keys and logins can be read by their user alone.

"""


def settings_reference() -> str:
    """The page of settings and of the home."""
    rows = [_row(name, field) for name, field in Settings.model_fields.items()]
    rows += [(f"`{name}`", default, meaning) for name, default, meaning in PREFECT]
    variables = table(("variable", "default", "meaning"), rows)
    return HEAD + variables + HOME_HEAD + table(("in it", "is"), HOME)


def _row(name: str, field: FieldInfo) -> tuple[str, str, str]:
    alias = field.validation_alias
    names = alias.choices if isinstance(alias, AliasChoices) else [f"{PREFIX}{name.upper()}"]
    variables = ", ".join(f"`{one}`" for one in names)
    return variables, _default(field.default), field.description or ""


def _default(value: object) -> str:
    if value is None or value == "":
        return "none"
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    return f"`{shown}`"
