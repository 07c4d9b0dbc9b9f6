"""The generated files of docs/, each with the function that makes its text."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from moorage.reports.field_reference import FILES
from moorage.reports.file_schema import file_schema
from scripts.reference.causes import troubleshooting
from scripts.reference.commands import command_line
from scripts.reference.fields import fleet_reference, policy_reference, spec_reference
from scripts.reference.settings import settings_reference

PAGES: dict[str, Callable[[], str]] = {
    "spec.md": spec_reference,
    "fleet.md": fleet_reference,
    "policy-reference.md": policy_reference,
    "cli.md": command_line,
    "settings.md": settings_reference,
    "troubleshooting.md": troubleshooting,
    **{f"schemas/{file}.json": partial(file_schema, file) for file in FILES},
}
