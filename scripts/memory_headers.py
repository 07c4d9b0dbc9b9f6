"""Write `tensors.json`, the header of a checkpoint, from `config.json` alone.

Runs where transformers 5 and torch are installed, for example where memory_oracle.py runs:

    VENV/bin/python scripts/memory_headers.py FOLDER... [--dtype BF16]

The model class of transformers is built on torch's meta device, and its parameters are turned back
into the layout on disk: one tensor per expert, no tied copies.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoConfig
from transformers.core_model_loading import revert_weight_conversion

Header = dict[str, dict[str, Any]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--dtype", default="BF16", help="element type of all tensors")
    arguments = parser.parse_args()
    for folder in arguments.folders:
        header = read_header(folder, arguments.dtype)
        lines = [f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in header.items()]
        (folder / "tensors.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def read_header(folder: Path, dtype: str) -> Header:
    config = AutoConfig.from_pretrained(folder)
    model_class = getattr(transformers, config.architectures[0])
    with torch.device("meta"):
        model = model_class(config)
    tied = set(getattr(model, "all_tied_weights_keys", None) or ())
    state = {name: p for name, p in model.named_parameters() if name not in tied}
    for name, buffer in model.state_dict().items():
        if name not in tied:
            state.setdefault(name, buffer)
    return {
        name: {"dtype": dtype, "shape": list(tensor.shape)}
        for name, tensor in revert_weight_conversion(model, state).items()
    }


if __name__ == "__main__":
    main()
