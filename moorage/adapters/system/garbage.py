"""How often a process collects garbage."""

import atexit
import gc

FIRST_OBJECTS = 300_000
"""New objects before the first collection. A command that only looks makes fewer."""

NEW_OBJECTS = 10_000
"""New objects after which Python collects the youngest generation; Python's default is 700."""

OLDER = (20, 20)
"""Collections of a generation after which the next older generation is collected."""


def look_for_garbage_rarely() -> None:
    """Collect garbage less often, and not at the exit of the process.

    A command imports some hundred thousand objects, which all stay alive. Visiting them again and
    again, and once more at exit, takes a quarter of the time of `moorage status`. So nothing is
    collected before they are there, and what is alive after the first collection is not visited
    again.
    """
    gc.set_threshold(FIRST_OBJECTS, *OLDER)
    gc.callbacks.append(_after_first)
    atexit.register(gc.freeze)


def _after_first(phase: str, _: dict[str, int]) -> None:
    if phase == "stop":
        gc.callbacks.remove(_after_first)
        gc.freeze()
        gc.set_threshold(NEW_OBJECTS, *OLDER)
