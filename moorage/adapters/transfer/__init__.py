"""Transfer of models to remote hosts, by programs in helper containers on those hosts."""

import inspect
import re
import sys
from types import ModuleType

NEEDED = re.compile(r"^from (moorage\.\S+) import", re.MULTILINE)
JOINED = """\
import sys, types
def load(name, text):
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec"), module.__dict__)
    return module
"""


def bundle(program: ModuleType) -> str:
    """Source text for `python3 -c` that runs a module's `main`, with the modules it imports."""
    loads = [f"load({name!r}, {text!r})" for name, text in _sources(program).items()]
    return JOINED + "\n".join(loads) + ".main()\n"


def _sources(module: ModuleType) -> dict[str, str]:
    """Texts of a module and of those that it imports of moorage, by name, dependencies first."""
    found, text = dict[str, str](), inspect.getsource(module)
    for name in NEEDED.findall(text):
        found |= _sources(sys.modules[name])
    return found | {module.__name__: text}
