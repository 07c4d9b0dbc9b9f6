"""The site of the documents, as `make site` builds it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built without a warning."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, cwd=REPOSITORY, env=quiet, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("index.html", "finds every model a berth"),
        ("tutorial/index.html", "exactly as it was: same revision, same plan"),
        ("troubleshooting/index.html", 'id="no-fit"'),
        ("troubleshooting/index.html", "No available memory for the cache blocks"),
        ("cli/index.html", 'id="moorage-models-prune"'),
        ("spec/index.html", 'href="../schemas/spec.json"'),
        ("contributing/index.html", '<pre class="mermaid">'),
        ("ledger/index.html", 'href="../contributing/#a-migration"'),
        ("decisions/own-saga/index.html", "A saga of our own"),
    ],
)
def test_a_page_is_there_with_its_content(site: Path, page: str, text: str) -> None:
    assert text in (site / page).read_text()


@pytest.mark.parametrize(
    ("term", "address"),
    [("engine-kv-cache-too-small", "troubleshooting/#"), ("keep_alive", "spec/#")],
)
def test_a_search_finds_where_a_term_is_explained(site: Path, term: str, address: str) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text())
    found = [one["location"] for one in index["docs"] if term in one["title"] + one["text"]]
    assert any(location.startswith(address) for location in found)


def test_every_page_but_an_example_is_in_the_navigation(site: Path) -> None:
    home = (site / "index.html").read_text()
    pages = {f"{page.parent.relative_to(site)}/" for page in site.rglob("index.html")} - {"./"}
    assert {page for page in pages if f'href="{page}"' not in home} == {"redeploying/example/"}


def test_no_page_names_a_script_a_font_or_a_picture_of_another_site(site: Path) -> None:
    loaded = re.compile(r'<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)="(?:https?:)?//')
    assert [page for page in site.rglob("*.html") if loaded.search(page.read_text())] == []


def test_the_schemas_are_published(site: Path) -> None:
    schema = json.loads((site / "schemas" / "fleet.json").read_text())
    assert schema["properties"]["hosts"]["minItems"] == 1
