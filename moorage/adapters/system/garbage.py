"""How often a process looks for garbage."""

import atexit
import gc

NEW_OBJECTS = 10_000
"""After so many Python looks for garbage among the new ones; its own number is 700."""


def look_for_garbage_rarely() -> None:
    """Look for garbage less often, and not once more when the process ends.

    What a command imports are some hundred thousand objects, and all of them stay. To look through
    them again and again, and last when they all go, was a quarter of `moorage status`.
    """
    gc.set_threshold(NEW_OBJECTS, 20, 20)
    atexit.register(gc.freeze)
