"""Bringing models to hosts that are other machines, by programs in helper containers there."""

import inspect
from types import ModuleType

JOINED = """\
import sys, types
def load(name, text):
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec"), module.__dict__)
    return module
"""


def bundle(program: ModuleType, *needed: ModuleType) -> str:
    """A text for `python3 -c` that runs a module's `main`.

    `needed` is what it imports beyond the standard library, in the order of their own needs.
    """
    loads = [
        f"load({module.__name__!r}, {inspect.getsource(module)!r})" for module in (*needed, program)
    ]
    return JOINED + "\n".join(loads) + ".main()\n"
