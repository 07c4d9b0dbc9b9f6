"""Commands that are imported lazily and whose failures become exit codes."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple, NoReturn, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from moorage.cli import silently_interrupted

C = TypeVar("C", bound=Callable[..., Any])

USAGE_ERROR: type[Exception] = typer.BadParameter.__bases__[0]
"""Typer's error of a command line, which has no public name."""

HELP = {"help_option_names": ["-h", "--help"]}


class Target(NamedTuple):
    """Import path of a command, and its entry in the list of commands.

    Attributes:
        place: `module:name` of a function or of a group of commands.
        help: The first line of its docstring, since the list is shown without importing it.
        panel: Heading of the command in the list.
    """

    place: str
    help: str
    panel: str

    def load(self, name: str) -> Any:
        """Import the command and give it this name."""
        module, _, attribute = self.place.partition(":")
        with silently_interrupted():
            found = getattr(importlib.import_module(module), attribute)
        if isinstance(found, typer.Typer):
            group = typer.main.get_group(found)
            group.name = name
            return group
        alone = Commands(add_completion=False)
        alone.command(name)(found)
        return typer.main.get_command(alone)


class Commands(typer.Typer):
    """A Typer app that shows failures of its commands and turns them into exit codes.

    Args:
        lazy: Commands, by name, that are imported when they run.
    """

    def __init__(self, lazy: Mapping[str, Target] | None = None, **settings: Any) -> None:
        group = type("_LazyGroup", (_Group,), {"lazy": lazy}) if lazy else _Group
        super().__init__(cls=group, context_settings=HELP, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[C], C]:
        """Register a command, as `typer.Typer` does."""
        return super().command(name, cls=_Command, **settings)


class _Group(TyperGroup):
    lazy: Mapping[str, Target] = {}

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands.update((name, LazyCommand(name, one)) for name, one in self.lazy.items())

    def main(self, args: Sequence[str] | None = None, *parts: Any, **settings: Any) -> Any:
        """Run the command line; with `--json` the failure for a wrong one is data, too."""
        words = sys.argv[1:] if args is None else list(args)
        ends_here = settings.get("standalone_mode", True)
        if not ends_here or "--json" not in takewhile("--".__ne__, words):
            return super().main(words, *parts, **settings)
        try:
            status = super().main(words, *parts, **{**settings, "standalone_mode": False})
        except USAGE_ERROR as error:
            _leave_misused(error)
        sys.exit(status if isinstance(status, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        return _exit_on_failure(partial(super().invoke, ctx), ctx)


class _Command(TyperCommand):
    """Also takes options before its name: `models --fleet X prune` must prune no other fleet."""

    def invoke(self, ctx: Any) -> Any:
        before = ctx.parent.params if ctx.parent else {}
        for name, value in ctx.params.items():
            ctx.params[name] = value or before.get(name, value)
        return _exit_on_failure(partial(super().invoke, ctx), ctx)


class LazyCommand(TyperCommand):
    """Placeholder in the list for a command that is imported when its context is made."""

    def __init__(self, name: str, target: Target) -> None:
        super().__init__(name, help=target.help, rich_help_panel=target.panel)
        self._target = target

    def load(self) -> Any:
        """Import the actual command."""
        return self._target.load(str(self.name))

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        """The context of the actual command, which the caller then invokes."""
        return self.load().make_context(info_name, args, parent, **extra)


def _exit_on_failure(action: Callable[[], Any], context: Any) -> Any:
    from moorage.cli import output  # noqa: PLC0415  (the list needs none of it)

    try:
        return output.exit_on_failure(action, as_json=bool(context.params.get("as_json")))
    except typer.BadParameter as error:
        error.message = output.refused_argument(error.__cause__) or error.message
        raise


def _leave_misused(error: Any) -> NoReturn:
    """Exit with a failure in JSON for a command line that Typer refuses."""
    from moorage.cli import output  # noqa: PLC0415  (as above)
    from moorage.common.failures import Cause, Failure  # noqa: PLC0415  (as above)

    command = error.ctx.command_path if error.ctx else "moorage"
    advice = f"`{command} --help` lists what it takes."
    failure = Failure(Cause.BAD_SETTING, error.format_message(), suggestion=advice)
    output.leave(failure, as_json=True)
