"""Sending a file of this machine: the very file that was listed, or a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.adapters.transfer.hand_over import parcel
from moorage.common.failures import Cause, Failure
from moorage.models.source import ModelFile
from tests.builders import a_model


def test_a_file_that_cannot_be_read_is_no_trouble_of_the_host(tmp_path: Path) -> None:
    model = a_model(path=str(tmp_path))
    stream = parcel(model, ModelFile(name="tokenizer.model", size=5), "/tokenizer.model")
    with pytest.raises(Failure, match=r"tokenizer\.model cannot be read") as caught:
        list(stream)
    assert caught.value.cause is Cause.SOURCE_INCOMPLETE


@pytest.mark.parametrize("target", ["", "shared/a.gguf"])
def test_a_link_that_was_changed_after_it_was_listed_sends_no_other_file(
    tmp_path: Path, target: str
) -> None:
    root, login = tmp_path / "tiny", tmp_path / "login"
    listed = tmp_path / (target or "tiny/a.gguf")
    for folder in (root, listed.parent):
        folder.mkdir(exist_ok=True)
    listed.write_bytes(b"model")
    file = ModelFile(name="a.gguf", size=5, target=str(listed) if target else "")
    assert b"model" in b"".join(parcel(a_model(path=str(root)), file, "/a.gguf"))
    login.write_bytes(b"token")
    listed.unlink()
    listed.symlink_to(login)
    with pytest.raises(Failure, match="has become a link to") as caught:
        list(parcel(a_model(path=str(root)), file, "/a.gguf"))
    assert caught.value.cause is Cause.SOURCE_CORRUPT
