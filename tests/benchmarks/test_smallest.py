"""Benchmarks run as commands, at their smallest size; what takes Docker, Prefect or GPUs does not.

Neither does what streams answers in real time: `benchmarks.gateway` and `prefix_routing`, whose
proxies are in `test_proxies.py`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from benchmarks.claiming import PARTS
from benchmarks.downloads import SHARDS
from benchmarks.fleets import WEIGHTS
from benchmarks.lending_hosts import SSHD
from benchmarks.placement import RELEASES, STRATEGIES

pytestmark = pytest.mark.process
REPOSITORY = Path(__file__).parents[2]


def run(*words: str) -> str:
    command = [sys.executable, "-m", *words]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def results(*words: str) -> Any:
    return json.loads(run(*words, "--json"))


def test_downloads_are_measured_beside_their_peers(tmp_path: Path) -> None:
    sizes = ("--large", "9", "--shard", "1", "--small", "2")
    printed = run("benchmarks.downloads", *sizes, "--rounds", "1", "--folder", str(tmp_path))
    downloads = ["moorage", "hf", *(["hf, xet"] if find_spec("hf_xet") else [])]
    copies = [name for name in ("scp", "rsync") if SSHD.exists() and shutil.which(name)]
    expected = list[str]()
    for title in ("1 x 9 MB", f"{SHARDS} x 1 MB", "2 small files"):
        expected += [title, *downloads, "aims", title, "staging", *copies]
    lines = printed.splitlines()
    assert ["aims" if "(aim: 1)" in line else line[:20].strip() for line in lines] == expected


def test_each_part_of_a_claim_is_measured() -> None:
    found = results("benchmarks.claiming", "--hosts", "3", "--releases", "0", "1")
    assert [(size["hosts"], size["rows"]) for size in found] == [(3, 0), (3, 6)]
    assert all(size.keys() == {"hosts", "rows", *PARTS, "all"} for size in found)


def test_every_case_is_placed_or_refused() -> None:
    found = results("benchmarks.placement", "--quick", "--hosts", "5")["results"]
    assert len(found) == len(WEIGHTS) * len(STRATEGIES) * len(RELEASES)
    placed = {case["case"] for case in found if case["seats"]}
    assert placed == WEIGHTS.keys() - {"nowhere", "nowhere, across"}


def test_a_survey_of_simulated_hosts_is_measured() -> None:
    (found,) = results("benchmarks.survey", "--hosts", "3", "--dead", "0")
    assert (found["hosts"], found["dead"]) == (3, 0)
    assert {"answering_s", "all_s", "processor_s"} <= found.keys()
