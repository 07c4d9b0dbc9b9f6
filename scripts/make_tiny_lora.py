"""Make a LoRA adapter with random weights for the tiny llama of `make_tiny_model.py`.

    python scripts/make_tiny_lora.py OUT_DIR [--rank 8] [--seed 0] [--base acme/tiny] [--force]

Its weights are large enough to change the model's text. It has PEFT's format, and needs only numpy
and safetensors.
"""

import argparse
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from make_tiny_model import (
    HEAD_DIM,
    HEADS,
    HIDDEN,
    INTERMEDIATE,
    KV_HEADS,
    LAYERS,
    Named,
    write_json,
)
from safetensors.numpy import save_file

TARGETS = {
    "self_attn.q_proj": (HEADS * HEAD_DIM, HIDDEN),
    "self_attn.v_proj": (KV_HEADS * HEAD_DIM, HIDDEN),
    "self_attn.o_proj": (HIDDEN, HEADS * HEAD_DIM),
    "mlp.down_proj": (HIDDEN, INTERMEDIATE),
}
"""Output and input sizes of the adapted layers."""

SCALE = 0.5
"""Standard deviation of both factors; their product outweighs the model's weights, with 0.2."""


def main() -> int:
    args = parse_arguments()
    out: Path = args.out_dir
    if (out / "adapter_model.safetensors").exists() and not args.force:
        print(f"{out} is already complete")
        return 0
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    write_json(out / "adapter_config.json", adapter_config(args.rank, args.base))
    file = out / "adapter_model.safetensors"
    save_file(dict(tensors(args.rank, args.seed)), file, metadata={"format": "pt"})
    file.chmod(0o644)  # safetensors makes it private, but containers may run as another user
    print(f"{out}: LoRA of rank {args.rank}, seed {args.seed}")
    return 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Make a LoRA adapter for the tiny llama.")
    parser.add_argument("out_dir", type=Path)
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--base", default="acme/tiny", help="the model that it says it is for")
    parser.add_argument("--force", action="store_true", help="make it again")
    return parser.parse_args()


def adapter_config(rank: int, base: str) -> dict[str, Any]:
    return {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": rank,
        "lora_alpha": 2 * rank,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": sorted(name.rpartition(".")[2] for name in TARGETS),
        "inference_mode": True,
    }


def tensors(rank: int, seed: int) -> Iterator[Named]:
    random = np.random.default_rng(seed)
    for layer in range(LAYERS):
        for name, (outputs, inputs) in TARGETS.items():
            at = f"base_model.model.model.layers.{layer}.{name}"
            first = SCALE * random.standard_normal((rank, inputs))
            second = SCALE * random.standard_normal((outputs, rank))
            yield f"{at}.lora_A.weight", first.astype(np.float32)
            yield f"{at}.lora_B.weight", second.astype(np.float32)


if __name__ == "__main__":
    sys.exit(main())
