"""When a process first looks for garbage."""

import subprocess
import sys

PROGRAM = """
import gc
from moorage.adapters.system.garbage import FIRST_OBJECTS, NEW_OBJECTS, look_for_garbage_rarely
look_for_garbage_rarely()
ends = []
gc.callbacks.append(lambda phase, _: ends.append(phase))
kept = [[] for _ in range(FIRST_OBJECTS // 2)]
print(len(ends), gc.get_freeze_count())
kept += [[] for _ in range(FIRST_OBJECTS)]
print(len(ends) > 0, gc.get_freeze_count() >= FIRST_OBJECTS, gc.get_threshold()[0] == NEW_OBJECTS)
"""


def test_it_is_first_collected_after_the_imports_of_a_command_which_are_kept() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["0 0", "True True True"]
