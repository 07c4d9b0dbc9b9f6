"""Environment variables of a command: those that its user gave, and those that it adds."""

import os
from collections.abc import Mapping

_added: dict[str, tuple[str, str | None]] = {}
"""By name of a variable, the value that this process has set, and the user's; None = not given."""


def add_variables(variables: Mapping[str, str]) -> None:
    """Set variables that are only for this command and for its child processes."""
    given = given_environment()
    for name, value in variables.items():
        _added[name] = (value, given.get(name))
        os.environ[name] = value


def given_environment() -> dict[str, str]:
    """The variables of this process as its user gave them, for programs that outlive it."""
    found = dict(os.environ)
    for name, (value, given) in _added.items():
        if found.get(name) != value:
            continue
        del found[name]
        if given is not None:
            found[name] = given
    return found
