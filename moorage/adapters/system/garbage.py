"""How often a process looks for garbage."""

import atexit
import gc

NEW_OBJECTS = 10_000
"""After so many Python looks for garbage among the new ones; its own number is 700."""

OLDER = (20, 20)
"""After so many of these it looks among older ones, and after so many of those among all."""


def look_for_garbage_rarely() -> None:
    """Look for garbage less often, and not once more when the process ends.

    A command imports some hundred thousand objects, and all of them stay. To look through them
    again and again, and once more when they all go, takes a quarter of `moorage status`.
    """
    gc.set_threshold(NEW_OBJECTS, *OLDER)
    atexit.register(gc.freeze)
