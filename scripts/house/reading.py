"""The files that a reader opens to answer a question, found by following names from a module.

Two rules, the same for every tree:

- A runbook (`runbook`): start with the functions of a flow. Open each file of `flows/` whose
  functions they name, directly or through another flow's file, and each file of `tasks/` that these
  name. Files that a task names are not opened: the task's name says what it does.
- An origin (`origin`): start with the functions of a step in `tasks/`. Open the files on the
  shortest chain of names that leads to the function which writes a marker, and the files that
  define the names in this function, including types.

A name counts wherever a function uses it as a value, called or passed as an argument.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from scripts.house.source_tree import SourceTree, Symbol

FLOW = "flows.deploy_model"


@dataclass(frozen=True, slots=True)
class Origin:
    """A question about the origin of a marker.

    Attributes:
        start: Module of the step that a reader starts with.
        marker: The marker in the last function: `text` is a string, `.NAME` an attribute,
            `name=` a keyword argument.
    """

    start: str
    marker: str


FLAG = (
    Origin("tasks.plan", "--gpu-memory-utilization"),
    Origin("tasks.place", "utilization="),
)
"""Why a plan has this flag, and which function of the placement decides its number."""

REFUSAL = (Origin("tasks.place", ".LABELS"),)
"""Why a host without the labels that a spec asks for is refused."""


def reading_lists(tree: SourceTree) -> dict[str, list[str]]:
    """Paths to open for each question, sorted."""
    return {
        "deploy": _paths(tree, runbook(tree, FLOW)),
        "flag": _paths(tree, {module for one in FLAG for module in origin(tree, one)}),
        "refusal": _paths(tree, {module for one in REFUSAL for module in origin(tree, one)}),
    }


def runbook(tree: SourceTree, flow: str) -> set[str]:
    """Modules of `flows` that a flow runs through, and those of `tasks` that they name."""
    chains = _chains(tree, flow, lambda symbol: symbol.module.startswith("flows."))
    return {symbol.module for symbol in chains if symbol.module.startswith(("flows.", "tasks."))}


def origin(tree: SourceTree, question: Origin) -> set[str]:
    """Modules on the chain to the function that writes the marker, and of the names in it.

    Raises:
        LookupError: When no function on any chain from the start writes the marker.
    """
    chains = _chains(tree, question.start, lambda _: True)
    for symbol in chains:
        if writer := _writer(tree, symbol, question.marker):
            named = {used.module for used in _uses(tree, symbol.module, writer, types=True)}
            return named | {link.module for link in _links(chains, symbol)}
    raise LookupError(f"nothing that {question.start} leads to writes {question.marker}")


def _paths(tree: SourceTree, modules: set[str]) -> list[str]:
    return sorted(tree.modules[name].path for name in modules)


def _chains(
    tree: SourceTree, start: str, follow: Callable[[Symbol], bool]
) -> dict[Symbol, Symbol | None]:
    """Symbols that a module leads to, the nearest first, each with the symbol that names it."""
    names = tree.modules[start].definitions if start in tree.modules else {}
    chains: dict[Symbol, Symbol | None] = {Symbol(start, name): None for name in names}
    queue = deque(chains)
    while queue:
        symbol = queue.popleft()
        definition = tree.modules[symbol.module].definitions.get(symbol.name)
        if definition is None or not follow(symbol):
            continue
        for used in sorted(_uses(tree, symbol.module, definition)):
            if used not in chains:
                chains[used] = symbol
                queue.append(used)
    return chains


def _links(chains: dict[Symbol, Symbol | None], end: Symbol) -> Iterator[Symbol]:
    link: Symbol | None = end
    while link:
        yield link
        link = chains[link]


def _uses(
    tree: SourceTree, module: str, definition: ast.AST, *, types: bool = False
) -> set[Symbol]:
    """The tree's symbols that a definition names as values, and with `types` in annotations."""
    names = tree.names[module]
    found = set()
    for node in _walk(definition, types=types):
        if isinstance(node, ast.Name) and node.id in names:
            found.add(tree.resolve(names[node.id]))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = names.get(node.value.id)
            if owner and not owner.name:
                found.add(tree.resolve(Symbol(owner.module, node.attr)))
    return found


def _walk(node: ast.AST, *, types: bool) -> Iterator[ast.AST]:
    yield node
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns") and not types:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _walk(child, types=types)


def _writer(tree: SourceTree, symbol: Symbol, marker: str) -> ast.AST | None:
    """The smallest function of a definition that writes a marker; else the definition itself."""
    definition = tree.modules[symbol.module].definitions.get(symbol.name)
    if definition is None or not _writes(definition, marker):
        return None
    inner = [
        node
        for node in ast.walk(definition)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _writes(node, marker)
    ]
    return inner[-1] if inner else definition


def _writes(definition: ast.AST, marker: str) -> bool:
    return any(_is_marker(node, marker) for node in ast.walk(definition))


def _is_marker(node: ast.AST, marker: str) -> bool:
    if isinstance(node, ast.Attribute):
        return marker == f".{node.attr}"
    if isinstance(node, ast.keyword):
        return marker == f"{node.arg}="
    return isinstance(node, ast.Constant) and node.value == marker
