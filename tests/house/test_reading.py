"""Which files a reader opens."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.house.reading import Origin, origin, runbook
from tests.house.trees import make_tree

FLOWS = {
    "flows/deploy_model.py": """
from flows.rollout import roll_out
from flows.unused import other
from moorage.spec import Spec

async def deploy_model(spec: Spec): await roll_out(spec)
""",
    "flows/rollout.py": """
from tasks import stage
from tasks.launch import launch as start

def roll_out(spec): run(start, stage.stage(spec))
""",
    "flows/unused.py": "def other(): ...\n",
    "tasks/launch.py": "from tasks.ports import port\ndef launch(): port()\n",
    "tasks/stage.py": "def stage(spec): ...\n",
    "tasks/ports.py": "def port(): ...\n",
    "moorage/spec/__init__.py": "from moorage.spec.model import Spec\n",
    "moorage/spec/model.py": "class Spec: ...\n",
}

ORIGIN = {
    "tasks/plan.py": """
from moorage.placement.flags import flags
def planned(seat): return flags(seat)
""",
    "moorage/placement/flags.py": """
from moorage.placement import share
from moorage.spec import Seat

class Flags:
    def unrelated(self): return share.unused()
    def memory(self, seat: Seat): return ("--memory", share.shown(seat))

def flags(seat): return Flags().memory(seat)
""",
    "moorage/placement/share.py": """
from moorage.placement.unused import far
def unused(): far()
def shown(seat): return seat.share
""",
    "moorage/placement/unused.py": "def far(): ...\n",
    "moorage/spec/__init__.py": "from moorage.spec.seat import Seat\n",
    "moorage/spec/seat.py": "class Seat: ...\n",
}


def test_a_runbook_is_followed_through_flows_and_one_step_into_tasks(tmp_path: Path) -> None:
    assert runbook(make_tree(tmp_path, FLOWS), "flows.deploy_model") == {
        "flows.deploy_model",
        "flows.rollout",
        "tasks.launch",
        "tasks.stage",
    }


def test_an_origin_is_the_chain_to_the_function_and_what_that_names(tmp_path: Path) -> None:
    tree = make_tree(tmp_path, ORIGIN)
    assert origin(tree, Origin("tasks.plan", "--memory")) == {
        "tasks.plan",
        "moorage.placement.flags",
        "moorage.placement.share",
        "moorage.spec.seat",
    }


def test_a_marker_is_also_an_attribute_or_a_keyword(tmp_path: Path) -> None:
    text = "def decide(seat): return seat.copy(share=seat.LABELS)\n"
    tree = make_tree(tmp_path, {"tasks/place.py": text})
    for marker in ("share=", ".LABELS"):
        assert origin(tree, Origin("tasks.place", marker)) == {"tasks.place"}


def test_a_marker_that_nobody_writes_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match=r"tasks\.plan .* --other"):
        origin(make_tree(tmp_path, ORIGIN), Origin("tasks.plan", "--other"))
