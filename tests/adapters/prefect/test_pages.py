"""Where Prefect's pages are."""

from __future__ import annotations

import pytest

from moorage.adapters.prefect.pages import form_page, pages_of, record_page, run_page

API = "http://127.0.0.1:4200/api"


@pytest.mark.parametrize(
    ("api", "named", "pages"),
    [
        (API, "", "http://127.0.0.1:4200/v2"),
        (f"{API}/", "", "http://127.0.0.1:4200/v2"),
        ("https://team.example/prefect/api", "", "https://team.example/prefect/v2"),
        (API, "https://pages.example/", "https://pages.example"),
        ("", "", ""),
    ],
)
def test_pages_are_the_newer_ones_unless_others_are_named(
    monkeypatch: pytest.MonkeyPatch, api: str, named: str, pages: str
) -> None:
    monkeypatch.setenv("PREFECT_UI_URL", named)
    assert pages_of(api) == pages


def test_each_page_has_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PREFECT_UI_URL", raising=False)
    base = "http://127.0.0.1:4200/v2"
    assert run_page(API, "run-1") == f"{base}/runs/flow-run/run-1"
    assert run_page(API, "") == run_page("", "run-1") == ""
    assert record_page(API, "release-tiny") == f"{base}/artifacts/key/release-tiny"
    filled = "%7B%22name%22%3A%22a%26b%22%7D"
    assert form_page(API, "id-1", {"name": "a&b"}) == (
        f"{base}/deployments/deployment/id-1/run?parameters={filled}"
    )
