"""The key that a model asks for: shown, and used by commands that ask it something."""

from __future__ import annotations

import sys

from moorage.adapters.secrets.secrets import read_secrets
from moorage.cli.output import dump
from moorage.common.failures import Cause, Failure
from moorage.engines.api_key import key_secret
from moorage.engines.registry import ENGINES
from moorage.releases.release import ReleaseRow


def key_of(row: ReleaseRow, given: str = "") -> str:
    """The key to ask a release with: what the user gave, else its own; empty = it asks for none.

    Raises:
        Failure: `SECRET_MISSING` when this machine cannot read it.
    """
    name = "" if given else _name(row)
    return read_secrets([name])[name] if name else given


def show(row: ReleaseRow, *, as_json: bool) -> None:
    """Print the key of a release, and nothing else; as JSON also where it is kept.

    Raises:
        Failure: `SECRET_MISSING`, also when the engine asks for no key.
    """
    name = _name(row)
    if not name:
        raise Failure(
            Cause.SECRET_MISSING,
            f"{row.id} asks for no key",
            suggestion="Where other machines reach a vLLM, it asks for one unless"
            " `engine.api_key: none` is set; retire it and deploy it again.",
        )
    key = key_of(row)
    if as_json:
        return dump({"release": row.id, "secret": name, "key": key})
    sys.stdout.write(f"{key}\n")
    return None


def _name(row: ReleaseRow) -> str:
    plan = row.release.plan if row.release else None
    return key_secret(plan, ENGINES[plan.engine].api_key_variable) if plan else ""
