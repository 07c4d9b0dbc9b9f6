"""Options of `llama-server` become parameters of the server in the wheel."""

from __future__ import annotations

from importlib.metadata import version

import xllamacpp

from moorage.adapters.engines.llama_server import given, put, schema_of


def parameters(*words: str) -> xllamacpp.CommonParams:
    found = xllamacpp.CommonParams()
    for name, argument, value in given(words, schema_of(version("xllamacpp"))):
        put(found, argument, name, value)
    return found


def test_shares_of_accelerators_leave_none_to_the_others() -> None:
    shares = list(parameters("--tensor-split", "1,3").tensor_split)
    assert shares[:2] == [1, 3]
    assert set(shares[2:]) == {0}
