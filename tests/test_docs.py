"""The documents agree with the code."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from ruamel.yaml import YAML
from typer.core import TyperGroup

from moorage.cli.app import app
from moorage.cli.commands import LazyCommand
from moorage.common.failures import Cause
from moorage.operations.metrics.activity import Activity
from moorage.operations.metrics.present import Present
from moorage.policy.rules import Policy, Rules
from moorage.reports.metric_families import families
from scripts.make_dashboards import DASHBOARDS, FOLDER, dashboard
from scripts.reference.causes import readable
from scripts.reference.pages import PAGES

REPOSITORY = Path(__file__).parents[1]


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_what_the_code_says(name: str) -> None:
    written = (REPOSITORY / "docs" / name).read_text()
    assert written == PAGES[name](), "run `make docs`"
    assert "|  |\n" not in written, "a field has no description"


def test_the_page_of_failures_has_a_section_for_every_cause() -> None:
    written = (REPOSITORY / "docs" / "troubleshooting.md").read_text()
    for cause in Cause:
        assert f"\n### {cause}\n\n**{cause.summary}.**" in written
        assert f"](#{cause})" in written


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        (r"length is (?P<length>\d+)", ["length is {length}"]),
        (r"(?i)out of memory|bad_alloc", ["out of memory", "bad_alloc"]),
        (r"shm.*?(?P<size>\d+ MiB) required", ["shm...{size} required"]),
        (r"names \[(?P<names>[^\]]*)\] (are|is)", ["names [{names}] (are|is)"]),
        (r"^tool: error: ", ["tool: error:"]),
    ],
)
def test_a_pattern_is_shown_as_a_person_would_write_it(pattern: str, texts: list[str]) -> None:
    assert readable(pattern) == texts


def test_the_dashboards_are_what_their_tables_say() -> None:
    for name in DASHBOARDS:
        written = (FOLDER / f"{name}.json").read_text()
        assert json.loads(written) == dashboard(name), "run `make docs`"
    assert len(list(FOLDER.iterdir())) == len(DASHBOARDS)


def test_the_page_about_monitoring_names_every_metric_and_no_other() -> None:
    page = (REPOSITORY / "docs" / "monitoring.md").read_text()
    documented = set(re.findall(r"`(moorage_\w+)`", page))
    shown = {one.name for one in families(Activity(), Present())}
    assert {name.removesuffix("_total") for name in documented} == shown


def test_every_claim_about_security_names_tests_that_are_there() -> None:
    text = (REPOSITORY / "SECURITY.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", text)
    assert len(named) > 30
    missing = [
        f"{path}::{name}"
        for path, name in named
        if not re.search(rf"def {name}\(", (REPOSITORY / path).read_text())
    ]
    assert missing == []
    rows = re.findall(r"^\| (?!claim|---)(.*) \|$", text.partition("## What is defended")[2], re.M)
    assert all("tests/" in row for row in rows)
    assert "(SECURITY.md)" in (REPOSITORY / "README.md").read_text()


def test_the_readme_names_only_commands_that_are_there() -> None:
    readme = (REPOSITORY / "README.md").read_text()
    section = readme.partition("## Commands")[2].partition("The exit code")[0]
    rows = re.findall(r"^\| \*\*.*$", section, re.M)
    named = [text.removesuffix(" DIR") for row in rows for text in re.findall(r"`([^`]+)`", row)]
    assert len(named) > 30
    assert set(named) <= set(_names(typer.main.get_group(app)))


def _names(group: TyperGroup, prefix: str = "") -> Iterator[str]:
    """The words of every command and subgroup of a group, recursively."""
    for name, command in group.commands.items():
        yield f"{prefix}{name}"
        loaded = command.load() if isinstance(command, LazyCommand) else command
        if isinstance(loaded, TyperGroup):
            yield from _names(loaded, f"{name} ")


def test_the_example_of_a_policy_has_every_rule_with_its_default() -> None:
    page = (REPOSITORY / "docs" / "policy.md").read_text()
    examples = [
        YAML(typ="safe", pure=True).load(text)
        for text in re.findall(r"```yaml\n(.*?)```", page, re.S)
    ]
    whole, *others = examples
    assert Policy.model_validate(whole) == Policy()
    assert whole.keys() == Policy.model_fields.keys()
    assert whole["api"].keys() == whole["cli"].keys() == Rules.model_fields.keys()
    for example in others:
        Policy.model_validate(example)


def test_the_tree_ships_no_policy() -> None:
    assert not (REPOSITORY / "deployments" / "policy.yaml").exists()


def test_the_decisions_are_all_in_their_index() -> None:
    folder = REPOSITORY / "docs" / "decisions"
    listed = set(re.findall(r"\]\(([\w-]+\.md)\)", (folder / "README.md").read_text()))
    assert listed == {path.name for path in folder.glob("*.md")} - {"README.md"}


def test_documents_name_only_files_that_are_there() -> None:
    documents = [REPOSITORY / "CONTRIBUTING.md", *(REPOSITORY / "docs").rglob("*.md")]
    missing = [
        f"{document.name}: {path}"
        for document in documents
        for path in _paths_in(document.read_text())
        if not any(REPOSITORY.glob(path))
    ]
    assert missing == []


def test_documents_name_only_python_files_that_are_there() -> None:
    roots = ("moorage", "flows", "tasks", "tests", "scripts", "benchmarks")
    there = {path.name for root in roots for path in (REPOSITORY / root).rglob("*.py")}
    named = {
        (document.name, name)
        for document in [REPOSITORY / "CONTRIBUTING.md", *(REPOSITORY / "docs").rglob("*.md")]
        for name in re.findall(r"`(\w+\.py)`", document.read_text())
    }
    placeholders = {"NAME.py", "vNNNN_what.py"}
    assert {(page, name) for page, name in named if name not in there | placeholders} == set()


def test_links_between_documents_lead_somewhere() -> None:
    documents = [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")]
    missing = [
        f"{document.name}: {target}"
        for document in documents
        for target in re.findall(r"\]\(([^):#]+)(?:#[^)]*)?\)", document.read_text())
        if not (document.parent / target).exists()
    ]
    assert missing == []


def test_the_walkthrough_names_each_file_once() -> None:
    named = _paths_in((REPOSITORY / "docs" / "walkthrough.md").read_text())
    assert len(named) > 50
    assert [path for path, times in Counter(named).items() if times > 1] == []


def _paths_in(text: str) -> list[str]:
    return re.findall(r"`((?:moorage|flows|tasks|tests|scripts|benchmarks)/[\w/.*-]+)`", text)
