"""The parsed Python files of a tree: their rooms, their imports, and the symbols of their names."""

from __future__ import annotations

import ast
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PACKAGES = ("moorage", "flows", "tasks")


@dataclass(frozen=True, slots=True, order=True)
class Symbol:
    """A function, class or constant at a module's top level; empty name = the module itself."""

    module: str
    name: str = ""


@dataclass(frozen=True)
class Module:
    """One Python file.

    Attributes:
        name: Its dotted name; `__init__.py` has its package's name.
        path: Its path below the root of the tree.
        text: Its source.
    """

    name: str
    path: str
    text: str

    @property
    def room(self) -> str:
        """First folder or file below `moorage`, else the package: `placement`, `flows`."""
        first, *rest = self.name.split(".")
        return rest[0] if first == "moorage" and rest else first

    @property
    def lines(self) -> int:
        """Lines of the file, with comments and empty lines."""
        return len(self.text.splitlines())

    @cached_property
    def body(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.text, self.path)

    @cached_property
    def definitions(self) -> Mapping[str, ast.stmt]:
        """Top-level statements by the names that they define."""
        return {name: node for node in self.body.body for name in _defined_names(node)}


class SourceTree:
    """The modules of `moorage`, `flows` and `tasks` below a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        paths = sorted(path for package in PACKAGES for path in (root / package).rglob("*.py"))
        loaded = [_load(root, path) for path in paths]
        self.modules = {module.name: module for module in loaded}

    @cached_property
    def imports(self) -> Mapping[str, frozenset[str]]:
        """Modules of the tree that each module imports, at any place in the module.

        Relative imports are not found; this repository has none.
        """
        return {
            module.name: frozenset(
                symbol.module
                for node in ast.walk(module.body)
                for symbol in self._imported(node).values()
            )
            - {module.name}
            for module in self.modules.values()
        }

    @cached_property
    def names(self) -> Mapping[str, Mapping[str, Symbol]]:
        """The symbol of each name in a module: its own definitions, and imports from the tree."""
        return {
            module.name: {
                local: symbol
                for node in ast.walk(module.body)
                for local, symbol in self._imported(node).items()
            }
            | {name: Symbol(module.name, name) for name in module.definitions}
            for module in self.modules.values()
        }

    def resolve(self, symbol: Symbol) -> Symbol:
        """The definition of a symbol, found through the re-exports of packages."""
        module = self.modules[symbol.module]
        if not symbol.name or symbol.name in module.definitions:
            return symbol
        exported = self.names[symbol.module].get(symbol.name)
        return self.resolve(exported) if exported else Symbol(symbol.module)

    def _imported(self, node: ast.AST) -> dict[str, Symbol]:
        if isinstance(node, ast.Import):
            names = [alias for alias in node.names if alias.name in self.modules]
            return {alias.asname or alias.name: Symbol(alias.name) for alias in names}
        if not isinstance(node, ast.ImportFrom):
            return {}
        source = node.module or ""
        return {
            alias.asname or alias.name: symbol
            for alias in node.names
            if (symbol := self._from(source, alias.name)).module in self.modules
        }

    def _from(self, source: str, name: str) -> Symbol:
        below = f"{source}.{name}"
        return Symbol(below) if below in self.modules else Symbol(source, name)


@contextmanager
def tree_at(revision: str, root: Path) -> Iterator[SourceTree]:
    """The tree of a git revision, unpacked into a temporary folder.

    Raises:
        subprocess.CalledProcessError: When git does not know the revision.
    """
    command = ["git", "-C", str(root), "archive", revision, "pyproject.toml", *PACKAGES]
    archive = subprocess.run(command, check=True, capture_output=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        yield SourceTree(Path(folder))


def descendants(revision: str, root: Path) -> frozenset[str]:
    """Today's paths of the files that were there at a git revision, by the renames that git sees.

    A file that was split is the part that git takes for it; the other parts count as new.
    """
    there = set(_git(root, "ls-tree", "-r", "--name-only", revision))
    history = ["--reverse", "--topo-order", "--no-merges", "--format="]
    steps = ["--name-status", "-M", "--diff-filter=DR"]
    fields = iter(_git(root, "log", *history, *steps, f"{revision}..HEAD"))
    for status in fields:
        old = next(fields)
        new = next(fields) if status.startswith("R") else ""
        if old in there:
            there.remove(old)
            there.add(new)
    return frozenset(there - {""})


def _git(root: Path, command: str, *options: str) -> list[str]:
    """The fields of what a command of git prints, by their NULs."""
    words = ["git", "-C", str(root), command, "-z", *options]
    output = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return output.split("\0")[:-1]


def _load(root: Path, path: Path) -> Module:
    relative = path.relative_to(root)
    name = ".".join(relative.with_suffix("").parts).removesuffix(".__init__")
    return Module(name, relative.as_posix(), path.read_text())


def _defined_names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        targets: list[ast.expr] = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    else:
        return []
    return [target.id for target in targets if isinstance(target, ast.Name)]
