"""The comparison of two releases shows every difference, and no secret."""

from __future__ import annotations

import json
from collections.abc import Callable

from moorage.models.quantizations import FilesChoice
from moorage.operations.history.comparison import compare
from moorage.reports.operations_report import comparison_document
from tests.builders import a_release, a_spec
from tests.operations.history.releases import first, planned, ran, second

Golden = Callable[[str, str], None]


def test_what_differs_is_told_part_by_part(golden: Golden) -> None:
    golden("diff.md", comparison_document(compare(first(), second())).markdown() + "\n")


def test_the_same_as_data(golden: Golden) -> None:
    content = compare(first(), second()).model_dump(mode="json", exclude_none=True)
    golden("diff.json", json.dumps(content, indent=1) + "\n")


def test_values_of_variables_and_secrets_are_never_told() -> None:
    before = a_spec(engine={"env": {"PATTERN": "hush-1"}, "args": ["--api-key=hush-2"]})
    after = a_spec(engine={"env": {"PATTERN": "hush-3"}, "args": ["--api-key hush-4"]})
    content = compare(planned(before), planned(after, 2)).model_dump_json()
    assert "PATTERN" in content
    assert "hush" not in content


def test_another_choice_of_files_is_a_difference() -> None:
    spec = a_spec(files="auto")
    choices = [FilesChoice(pattern=name, reason="", verdicts=()) for name in ("Q8.gguf", "Q6.gguf")]
    before, after = (a_release(spec=spec, files=choice) for choice in choices)
    (change,) = compare(before, after).revision
    assert (change.what, change.before, change.after) == ("files", "Q8.gguf", "Q6.gguf")


def test_equal_releases_say_so_and_show_their_figures() -> None:
    same = first().model_copy(update={"id": "llama.v3"})
    comparison = compare(first(), same)
    assert comparison.is_same
    page = comparison_document(comparison).markdown()
    assert "Both run the same in the same place." in page
    assert "1 times" in page


def test_a_flag_of_one_replica_alone_says_which() -> None:
    one, both = a_spec(replicas=1), a_spec(replicas=2)
    changes = compare(planned(one), planned(both, 2)).flags
    assert {change.what: change.where for change in changes} == {"--port": ("r1 leader",)}


def test_a_release_without_a_plan_has_no_flags() -> None:
    comparison = compare(a_release(), ran(planned(a_spec(), 2)))
    assert all(change.before is None for change in comparison.flags)
    assert comparison.flags
    assert not comparison.spec
