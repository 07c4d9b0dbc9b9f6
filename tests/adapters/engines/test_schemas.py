from __future__ import annotations

from pathlib import Path

import pytest

from moorage.adapters.engines.schemas import SchemaStore
from moorage.engines.schema.argument import Argument, Kind, Schema

OWN = Schema(
    engine="vllm",
    version="0.32.0",
    arguments=(Argument(options=("--acme",), kind=Kind.SWITCH),),
)
DIGEST = "sha256:" + "ab" * 32


@pytest.fixture
def store(tmp_path: Path) -> SchemaStore:
    return SchemaStore(tmp_path)


@pytest.mark.parametrize(
    ("version", "found"),
    [
        ("0.32.0", "0.32.0"),
        ("v0.32.0", "0.32.0"),
        ("0.32.0+cpu", "0.32.0"),
        ("0.18.1", "0.18.0"),
        ("0.27.1", "0.27.0"),
    ],
)
def test_a_shipped_version_is_found_however_it_is_written(
    store: SchemaStore, version: str, found: str
) -> None:
    schema = store.of_version(version)
    assert schema
    assert schema.version == found


@pytest.mark.parametrize("version", ["", "9.9.9", "0.32.0-custom", "0.32.1", "nightly"])
def test_a_version_that_nobody_looked_at_has_none(store: SchemaStore, version: str) -> None:
    assert store.of_version(version) is None


def test_what_was_extracted_here_wins_over_what_is_shipped(store: SchemaStore) -> None:
    store.keep(OWN, ("0.32.0",))
    assert store.of_version("0.32.0") == OWN


def test_an_image_is_known_by_any_of_its_digests(store: SchemaStore) -> None:
    (path,) = store.keep(OWN, (DIGEST,))
    assert ":" not in path.name
    assert store.of_image("", DIGEST) == OWN
    assert store.of_image("sha256:" + "cd" * 32) is None
    assert store.of_image() is None


def test_a_file_of_another_shape_counts_as_none(store: SchemaStore) -> None:
    (path,) = store.keep(OWN, (DIGEST,))
    path.write_text('{"format": 99}')
    assert store.of_image(DIGEST) is None
