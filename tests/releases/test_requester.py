"""The requester of a flow run: what is known, and what is only claimed."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from moorage.releases.requester import Claim, Requester, one_line

CLAIMS: TypeAdapter[str] = TypeAdapter(Claim)

KNOWN = {
    "ann@build, command line": Requester(user="ann", host="build"),
    "Prefect's API: unknown requester": Requester(),
    "Prefect's API: created by AUTOMATION nightly, deployment 12": Requester(
        created_by="AUTOMATION nightly", deployment="12"
    ),
    "Prefect's API: a schedule, parent task run 7": Requester(scheduled=True, parent="7"),
    "Prefect's API: unknown requester; claimed: ann, command line": Requester(
        claimed="ann, command line"
    ),
}


@pytest.mark.parametrize(("summary", "requester"), KNOWN.items(), ids=KNOWN)
def test_what_is_known_comes_first_and_a_claim_is_marked(
    summary: str, requester: Requester
) -> None:
    assert requester.summary == summary


@pytest.mark.parametrize("claim", ["", "ann", "Änn Ōno, ticket #7 (平)", "x" * 200])
def test_a_claim_is_one_line_of_text(claim: str) -> None:
    assert CLAIMS.validate_python(claim) == claim


@pytest.mark.parametrize(
    "claim", ["x" * 201, "a\nb", "a\x1b[31m", "a\x00", "a\x85b", "a\u202eb", "a\u2028b", "\ufeffa"]
)
def test_a_claim_that_hides_something_is_refused(claim: str) -> None:
    with pytest.raises(ValidationError):
        CLAIMS.validate_python(claim)


def test_names_that_others_chose_show_all_that_they_hold() -> None:
    assert one_line("a\nb\x1b\u202ec" + "d" * 500) == r"a b\x1b\u202ec" + "d" * 186
