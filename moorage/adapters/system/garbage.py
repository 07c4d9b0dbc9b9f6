"""How often a process collects garbage."""

import atexit
import gc

NEW_OBJECTS = 10_000
"""New objects after which Python collects the youngest generation; Python's default is 700."""

OLDER = (20, 20)
"""Collections of a generation after which the next older generation is collected."""


def look_for_garbage_rarely() -> None:
    """Collect garbage less often, and not at the exit of the process.

    A command imports some hundred thousand objects, which all stay alive. Visiting them again and
    again, and once more at exit, takes a quarter of the time of `moorage status`.
    """
    gc.set_threshold(NEW_OBJECTS, *OLDER)
    atexit.register(gc.freeze)
