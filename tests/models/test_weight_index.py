from __future__ import annotations

import json

import pytest

from moorage.common.failures import Cause, Failure
from moorage.models.weight_index import (
    Index,
    announced_size,
    follow_indexes,
    index_files,
    read_index,
)
from tests.models.test_files import listing, names_of

INDEX = "model.safetensors.index.json"


def index(*shards: str) -> dict[str, Index]:
    weight_map = {f"tensor {place}": shard for place, shard in enumerate(shards)}
    return {INDEX: read_index(INDEX, json.dumps({"weight_map": weight_map}).encode())}


def test_beside_an_index_only_the_files_that_it_names_are_kept() -> None:
    there = listing(f"config.json {INDEX} a.safetensors b.safetensors whole.safetensors")
    kept, skipped = follow_indexes(there, (), index("a.safetensors", "b.safetensors"))
    assert names_of(kept) == f"config.json {INDEX} a.safetensors b.safetensors"
    assert [(file.name, file.reason) for file in skipped] == [
        ("whole.safetensors", f"not named by {INDEX}")
    ]


def test_an_index_says_nothing_about_other_folders() -> None:
    there = listing(f"{INDEX} a.safetensors 2_Dense/model.safetensors")
    kept, skipped = follow_indexes(there, (), index("a.safetensors"))
    assert (kept, skipped) == (tuple(there), ())


def test_only_indexes_of_the_chosen_family_count() -> None:
    there = listing(f"config.json {INDEX} pytorch_model.bin.index.json pytorch_model.bin")
    assert index_files("bin", there) == ("pytorch_model.bin.index.json",)


def test_missing_shards_are_named() -> None:
    shards = [f"{number}.safetensors" for number in range(12)]
    with pytest.raises(Failure) as caught:
        follow_indexes(listing(f"{INDEX} 3.safetensors"), (), index(*shards))
    assert caught.value.cause is Cause.SOURCE_INCOMPLETE
    assert "0.safetensors, 1.safetensors, 10.safetensors" in caught.value.detail
    assert "and 3 more" in caught.value.detail


@pytest.mark.parametrize(
    "content",
    [
        *(b"{", b"[]", b"{}", b'{"weight_map": []}', b'{"weight_map": {"t": 1}}'),
        *(b'{"weight_map": {"t": []}}', b'{"weight_map": {"t": "\\ud800"}}'),
        *(b'{"weight_map": {"t": "\\u001b[2J"}}', b'{"weight_map": ' + b"[" * 200_000),
        *(b'{"weight_map": {}, "metadata": {"total_size": %s}}' % n for n in (b"1e999", b"-1")),
        b'{"weight_map": {}, "metadata": {"total_size": 1' + b"0" * 300 + b"}}",
    ],
)
def test_a_malformed_index_is_named(content: bytes) -> None:
    with pytest.raises(Failure, match=f"{INDEX} is not an index of weights") as caught:
        read_index(INDEX, content)
    assert caught.value.cause is Cause.SOURCE_CORRUPT


@pytest.mark.parametrize(
    ("contents", "size"),
    [
        (['{"total_size": 7}'], 7),
        (['{"total_size": 7.0}', '{"total_size": 5}'], 12),
        (['{"total_size": 7}', "{}"], None),
        (["null"], None),
        ([], None),
    ],
)
def test_indexes_announce_the_size_of_all_tensors(contents: list[str], size: int | None) -> None:
    texts = (f'{{"weight_map": {{}}, "metadata": {metadata}}}' for metadata in contents)
    assert announced_size(read_index(INDEX, text.encode()) for text in texts) == size
