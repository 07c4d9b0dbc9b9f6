"""Models are chosen by name, by pattern and by label."""

from __future__ import annotations

import pytest

from moorage.common.failures import Failure
from moorage.operations.redeploy.outcome import Became, Redeployed, is_failure, row_of, summary
from moorage.operations.redeploy.selection import chosen
from tests.builders import a_spec

SPECS = [
    a_spec(name="llama-8b", labels={"tier": "gold", "team": "search"}),
    a_spec(name="llama-70b", labels={"tier": "gold"}),
    a_spec(name="qwen", labels={"tier": "batch"}),
]


@pytest.mark.parametrize(
    ("names", "labels", "meant"),
    [
        ([], {}, ["llama-70b", "llama-8b", "qwen"]),
        (["llama-*"], {}, ["llama-70b", "llama-8b"]),
        (["qwen", "llama-8b"], {}, ["llama-8b", "qwen"]),
        ([], {"tier": "gold"}, ["llama-70b", "llama-8b"]),
        ([], {"tier": "gold", "team": "search"}, ["llama-8b"]),
        ([], {"team": "*"}, ["llama-8b"]),
        (["qwen"], {"tier": "gold"}, []),
        (["nothing-*"], {}, []),
    ],
)
def test_who_is_meant(names: list[str], labels: dict[str, str], meant: list[str]) -> None:
    assert [spec.name for spec in chosen(SPECS, names, labels)] == meant


def test_a_name_that_nobody_has_is_a_mistake() -> None:
    with pytest.raises(Failure, match="nothing serves mistral"):
        chosen(SPECS, ["mistral", "qwen"], {})


def test_an_outcome_in_one_line_and_as_a_row() -> None:
    done = Redeployed(
        model="a", outcome=Became.REDEPLOYED, wave=2, before="a.v1", after="a.v2", seconds=61
    )
    idle = Redeployed(model="b", outcome=Became.UNCHANGED)
    assert summary([idle, done, idle]) == "1 redeployed, 2 unchanged"
    assert summary([]) == "there was nothing to do"
    assert list(row_of(done).values())[:5] == [2, "a", "redeployed", "a.v1", "a.v2"]
    assert not is_failure([done, idle])
    assert is_failure([idle.model_copy(update={"outcome": Became.NOT_BEGUN})])
