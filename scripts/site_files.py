"""A hook of MkDocs that registers each page under its path in the repository.

Thus relative links of a page work both on GitHub and on the site, from docs/ to the README and
back, and MkDocs reports broken ones.
"""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]

OUTSIDE = {
    "README.md": "index.html",
    "CONTRIBUTING.md": "contributing/index.html",
    "SECURITY.md": "security/index.html",
    "tests/golden/redeployment.md": "redeploying/example/index.html",
}
"""Pages outside of docs/, and their paths on the site."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The files of docs/ and those outside of it, under their paths in the repository."""

    def file(path: str, address: str) -> File:
        place = (str(ROOT), config.site_dir, config.use_directory_urls)
        return File(path, *place, dest_uri=address)

    pages = [file(path, address) for path, address in OUTSIDE.items()]
    for one in files:
        is_of_theme = one.src_dir != config.docs_dir
        pages.append(one if is_of_theme else file(f"docs/{one.src_uri}", one.dest_uri))
    return Files(pages)
