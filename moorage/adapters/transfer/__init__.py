"""Transfer of models to remote hosts, by programs in helper containers on those hosts."""

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
    """Source text for `python3 -c` that runs a module's `main`.

    `needed` lists the modules that it imports beyond the standard library, dependencies first.
    """
    loads = [
        f"load({module.__name__!r}, {inspect.getsource(module)!r})" for module in (*needed, program)
    ]
    return JOINED + "\n".join(loads) + ".main()\n"
