"""The command that measures the house, and the picture in CONTRIBUTING.md."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.house.__main__ import main
from scripts.house.layers import Layers
from scripts.house.measures import RoomSize, measure, size_of
from scripts.house.page import picture, table, updated
from scripts.house.source_tree import SourceTree, descendants, tree_at
from tests.house.trees import make_tree

REPOSITORY = Path(__file__).parents[2]

LONG = "def long(self, a, b, c, *d, **e):\n" + "    pass\n" * 40
FILES = {
    "flows/deploy_model.py": "from tasks.plan import plan\ndef deploy(): plan()\n",
    "tasks/plan.py": "def plan(): return '--gpu-memory-utilization'\n",
    "tasks/place.py": "def place(a): return a.f(utilization=a.LABELS)\n",
    "moorage/spec/plan.py": "def wide(a, b, c, d, e, f, *, g): ...\n",
    "moorage/spec/long.py": LONG,
    "moorage/spec/__init__.py": "",
}


def test_the_measures_of_a_tree(tmp_path: Path) -> None:
    measures = measure(make_tree(tmp_path, FILES))
    assert measures.rooms == {
        "flows": RoomSize(1, 2),
        "tasks": RoomSize(2, 2),
        "spec": RoomSize(3, 42),
    }
    assert measures.total == RoomSize(6, 46)
    assert measures.arrows_up == measures.outside_layers == []
    assert "moorage/spec/long.py" not in measures.small_files
    assert len(measures.small_files) == 4
    assert measures.duplicate_names == {"plan.py": ["moorage/spec/plan.py", "tasks/plan.py"]}
    assert measures.long_functions == ["moorage/spec/long.py:1 long"]
    assert measures.many_parameters == ["moorage/spec/plan.py:1 wide"]
    assert measures.reading == {
        "deploy": ["flows/deploy_model.py", "tasks/plan.py"],
        "flag": ["tasks/place.py", "tasks/plan.py"],
        "refusal": ["tasks/place.py"],
    }


def test_the_table_compares_two_trees(tmp_path: Path) -> None:
    now = measure(make_tree(tmp_path, FILES))
    (tmp_path / "moorage" / "spec" / "long.py").unlink()
    smaller = SourceTree(tmp_path)
    kept = size_of(smaller.modules.values())
    rows = [line.split() for line in table(measure(smaller), now, kept).splitlines()]
    assert ["|", "files", "|", "6", "|", "5", "|"] in rows
    assert ["|", "the", "files", "of", "before", "|", "6", "|", "5", "|"] in rows
    assert ["|", "spec", "|", "3,", "42", "|", "2,", "1", "|"] in rows


@pytest.fixture
def git(tmp_path: Path) -> Callable[..., None]:
    """Runs git in a tree that has one commit."""
    make_tree(tmp_path, FILES)

    def run(*words: str) -> None:
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        subprocess.run(["git", "-C", tmp_path, *identity, *words], check=True, capture_output=True)

    run("init")
    run("add", ".")
    run("commit", "--message", "First")
    run("tag", "first")
    return run


@pytest.mark.usefixtures("git")
def test_another_revision_is_read_out_of_git(tmp_path: Path) -> None:
    (tmp_path / "tasks" / "later.py").write_text("")
    with tree_at("HEAD", tmp_path) as tree:
        assert "tasks.place" in tree.modules
        assert "tasks.later" not in tree.modules


def test_files_descend_from_those_of_an_earlier_revision(
    tmp_path: Path, git: Callable[..., None]
) -> None:
    """They may be renamed twice; a new file under a name that was free counts as new."""
    git("mv", "moorage/spec/long.py", "moorage/spec/longer.py")
    git("rm", "tasks/plan.py")
    git("commit", "--message", "Second")
    git("mv", "moorage/spec/longer.py", "moorage/spec/longest.py")
    (tmp_path / "tasks" / "plan.py").write_text("another = 'file'\n")
    git("add", ".")
    git("commit", "--message", "Third")
    there = descendants("first", tmp_path)
    assert "moorage/spec/longest.py" in there
    assert "tasks/place.py" in there
    assert there.isdisjoint({"moorage/spec/long.py", "moorage/spec/longer.py", "tasks/plan.py"})


def test_the_command_prints_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tree(tmp_path, FILES)
    monkeypatch.setattr(sys, "argv", ["house", str(tmp_path)])
    main()
    assert re.search(r"^\| spec +\| 3, 42 ", capsys.readouterr().out, re.MULTILINE)


def test_the_picture_leaves_out_what_a_longer_way_says(tmp_path: Path) -> None:
    tree = make_tree(
        tmp_path,
        {
            "flows/deploy.py": "import tasks.place\nimport moorage.adapters.host\n",
            "tasks/place.py": "import moorage.adapters.host\n",
            "moorage/adapters/host.py": "import flows.deploy\n",
        },
    )
    arrows = "    flows --> tasks\n    tasks --> adapters"
    assert picture(tree) == f"```mermaid\nflowchart TD\n{arrows}\n```"


def test_a_document_without_a_place_for_the_picture_is_refused() -> None:
    with pytest.raises(ValueError, match="rooms: begin"):
        updated("No picture here.", "drawn")


def test_the_picture_of_the_rooms_is_up_to_date() -> None:
    document = (REPOSITORY / "CONTRIBUTING.md").read_text()
    assert updated(document, picture(SourceTree(REPOSITORY))) == document, "run `make docs`"


def test_the_table_of_rooms_has_every_room_in_its_order() -> None:
    document = (REPOSITORY / "CONTRIBUTING.md").read_text()
    described = re.findall(r"^\| `(?:moorage/)?(\w+)/` \|", document, re.M)
    assert tuple(described) == Layers.of(REPOSITORY).rooms
