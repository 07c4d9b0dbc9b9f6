"""Fuzz for some seconds: `python -m tests.fuzz --seconds 60 [--seed N] [--target NAME]`.

The seed is printed first. A fault is one line: target, seed, number of the case, what happened, a
folder with the input and output, and how to repeat it. The exit code is 1 when there was one.
"""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from random import Random

from tests.fuzz.server import serve
from tests.fuzz.targets import TARGETS
from tests.fuzz.worker import judged, prepare

WHOLE_EVERY = 150
"""One of so many cases starts the real command line, which takes a second to import."""

KEPT = Path(tempfile.gettempdir()) / "moorage-fuzz"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run cases until the time is over, and count faults."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="How long.")
    parser.add_argument("--cases", type=int, default=0, help="How many instead; 0 = by time.")
    parser.add_argument("--seed", type=int, default=None, help="Repeat the cases of a seed.")
    parser.add_argument("--target", action="append", choices=[*TARGETS], help="Only these.")
    parser.add_argument("--case", type=int, default=None, help="Only this one.")
    parser.add_argument("--hang", type=float, default=10, help="Seconds that a case may take.")
    parser.add_argument("--keep", type=Path, default=KEPT, help="Folder for inputs of faults.")
    chosen = parser.parse_args(arguments)
    seed = secrets.randbelow(10**9) if chosen.seed is None else chosen.seed
    print(f"seed {seed}", flush=True)
    fuzzer = Fuzzer(seed, chosen.keep, chosen.hang)
    try:
        if chosen.case is not None:
            for target in chosen.target or TARGETS:
                fuzzer.run(target, chosen.case)
        else:
            fuzzer.run_all(chosen.target or list(TARGETS), chosen.seconds, chosen.cases)
    finally:
        fuzzer.close()
    ran = ", ".join(f"{name} {number}" for name, number in sorted(fuzzer.ran.items()))
    codes = ", ".join(f"{number} of {code}" for code, number in sorted(fuzzer.codes.items()))
    print(f"exit codes: {codes}")
    print(f"{fuzzer.ran.total()} cases ({ran}), {fuzzer.faults} faults", flush=True)
    return int(fuzzer.faults > 0)


class Fuzzer:
    """Makes cases of a seed and runs them.

    Args:
        seed: What they are drawn by: the same seed, target and number make the same case.
        keep: Where the input of a fault is kept.
        seconds: How long a case may take.
    """

    def __init__(self, seed: int, keep: Path, seconds: float) -> None:
        self._seed, self._keep, self._seconds = seed, keep, seconds
        prepare()
        self._folder = Path(tempfile.mkdtemp(prefix="moorage-fuzz-cases-"))
        self._server, self._address = serve(self._folder)
        self.ran: Counter[str] = Counter()
        self.codes: Counter[int] = Counter()
        self.faults = 0

    def run_all(self, targets: Sequence[str], seconds: float, cases: int) -> None:
        """Run the targets in turns: for some seconds, or so many cases of each."""
        end = time.monotonic() + seconds
        for number in range(cases) if cases else count():
            for target in targets:
                if not cases and time.monotonic() > end:
                    return
                self.run(target, number)

    def run(self, target: str, number: int) -> None:
        """Run one case; a fault is printed, and its folder kept."""
        chance = Random(f"{self._seed} {target} {number}")
        folder = self._folder / f"{target}-{number}"
        folder.mkdir()
        (folder / "user").mkdir()
        case = TARGETS[target](chance, folder)
        whole = case.arguments[0] != "chain" and chance.randrange(WHOLE_EVERY) == 0
        seconds = self._seconds * (1 + whole)
        verdict = judged(case, folder, self._address, seconds, whole=whole)
        self.ran[target] += 1
        self.codes[verdict.code] += 1
        if verdict.faults:
            self.faults += 1
            kept = self._keep / f"{self._seed}-{folder.name}"
            shutil.rmtree(kept, ignore_errors=True)
            _keep(folder, kept)
            repeat = f"python -m tests.fuzz --target {target} --seed {self._seed} --case {number}"
            print(f"FAULT {target} seed {self._seed} case {number}: {'; '.join(verdict.faults)}")
            print(f"  moorage {' '.join(map(ascii, case.arguments))}")
            print(f"  input: {kept}\n  repeat: {repeat}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """End the server, remove the folder."""
        os.kill(self._server, signal.SIGKILL)
        os.waitpid(self._server, 0)
        shutil.rmtree(self._folder, ignore_errors=True)


def _keep(folder: Path, kept: Path) -> None:
    """Move, for a copy would read pipes and sparse files."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(folder, kept)


if __name__ == "__main__":
    sys.exit(main())
