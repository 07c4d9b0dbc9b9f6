"""Write the LoRA adapter of `make_tiny_lora.py` as one GGUF file that llama.cpp loads.

    python scripts/make_tiny_lora_gguf.py ADAPTER_DIR OUT_FILE

It is for the model that `make_tiny_gguf.py` writes with `--arch llama`.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import gguf
import numpy as np
from make_tiny_gguf import LAYER, Named, interleaved
from make_tiny_model import HEADS
from safetensors.numpy import load_file

FACTORS = {"lora_A": "lora_a", "lora_B": "lora_b"}
"""llama.cpp's names of the factors, by PEFT's names."""


def main() -> int:
    args = parse_arguments()
    config = json.loads((args.adapter / "adapter_config.json").read_text())
    writer = gguf.GGUFWriter(args.out, "llama")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", config["lora_alpha"])
    writer.add_base_model_count(1)
    writer.add_base_model_repo_url(0, f"https://huggingface.co/{config['base_model_name_or_path']}")
    for name, tensor in tensors(args.adapter):
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    print(f"{args.out}: LoRA of rank {config['r']}, {args.out.stat().st_size / 1e6:.2f} MB")
    return 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Write a tiny LoRA adapter as one GGUF file.")
    parser.add_argument("adapter", type=Path)
    parser.add_argument("out", type=Path)
    return parser.parse_args()


def tensors(folder: Path) -> Iterator[Named]:
    for name, tensor in load_file(folder / "adapter_model.safetensors").items():
        *_, layer, part, module, factor, _ = name.split(".")
        short, _ = LAYER[f"{part}.{module}"]
        if short in ("attn_q", "attn_k") and factor == "lora_B":
            tensor = interleaved(tensor, HEADS)
        yield f"blk.{layer}.{short}.weight.{FACTORS[factor]}", np.ascontiguousarray(tensor)


if __name__ == "__main__":
    sys.exit(main())
