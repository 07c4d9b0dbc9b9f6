"""The order of rooms, and what breaks it."""

from __future__ import annotations

from pathlib import Path

from scripts.house.layers import Layers
from tests.house.trees import make_tree


def test_two_contracts_make_one_order(tmp_path: Path) -> None:
    make_tree(tmp_path, {})
    rooms = Layers.of(tmp_path).rooms
    assert rooms[:5] == ("cli", "flows", "tasks", "adapters", "placement")
    assert set(rooms[5:]) == {"spec", "memory"}


def test_an_import_of_a_higher_room_points_up(tmp_path: Path) -> None:
    tree = make_tree(
        tmp_path,
        {
            "moorage/spec/model.py": "from moorage.placement.propose import place\n",
            "moorage/placement/propose.py": "def place(): ...\n",
            "moorage/adapters/host.py": "import moorage.placement.propose\nimport tasks.stage\n",
            "tasks/stage.py": "",
        },
    )
    assert Layers.of(tmp_path).arrows_up(tree) == [
        ("moorage.adapters.host", "tasks.stage"),
        ("moorage.spec.model", "moorage.placement.propose"),
    ]


def test_between_rooms_without_an_order_the_rarer_direction_points_up(tmp_path: Path) -> None:
    tree = make_tree(
        tmp_path,
        {
            "moorage/memory/a.py": "from moorage.spec import b\n",
            "moorage/memory/c.py": "from moorage.spec import b\n",
            "moorage/spec/b.py": "def late():\n    from moorage.memory import a\n",
        },
    )
    assert Layers.of(tmp_path).arrows_up(tree) == [("moorage.spec.b", "moorage.memory.a")]


def test_a_module_that_no_contract_names_is_outside(tmp_path: Path) -> None:
    paths = ["moorage/__init__.py", "moorage/loose.py", "moorage/specs.py", "moorage/spec/model.py"]
    tree = make_tree(tmp_path, dict.fromkeys(paths, ""))
    assert Layers.of(tmp_path).outside(tree) == ["moorage.loose", "moorage.specs"]
