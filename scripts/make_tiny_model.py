"""Make a tiny model with random weights that real engines load: about 1 MB, in a second.

    python scripts/make_tiny_model.py OUT_DIR [--kind llama|bert|reranker|classifier]
        [--seed 0] [--force]

The files are written directly, with numpy and tokenizers, so that they depend neither on torch nor
on the version of transformers.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

VOCABULARY = 512
HIDDEN = 64
LAYERS = 2
HEADS = 4
KV_HEADS = 2
HEAD_DIM = 32  # not HIDDEN / HEADS: vLLM's CPU attention has no kernel for 16
INTERMEDIATE = 256
LENGTH = 2048

SENTENCES = """\
Every ship finds a mooring in the harbour, and every model finds a host with room for it.
The pilot reads the depth of the water before the ship comes in, and writes it in the log.
A berth is kept for one ship at a time: two ships that hold the same berth would collide.
When the tide is low the big ships wait outside, and the small boats go in first.
What is the name of this ship? Where does it come from, and how long will it stay here?
The harbour master answers: she is called Hope, she carries grain, and she leaves on Monday.
Once upon a time there was a lighthouse keeper who counted 1234567890 waves every night.
Please say hello to the captain, and thank you for the ropes, the lamps and the coffee.
{"name": "Hope", "length": 120, "ready": true, "cargo": ["grain", "timber", "wool"]}
def moor(ship, berth): return berth if ship.draught < berth.depth else None
"""

CHAT_TEMPLATE = """\
{{- bos_token }}
{%- for message in messages %}
    {{- '<|' + message['role'] + '|>' + message['content'] + '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|assistant|>' }}
{%- endif %}
"""

SPECIAL_TOKENS = {
    "llama": {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>"},
    "bert": {
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
    },
}

SEQUENCES = {
    "llama": ("<s> $A", "<s> $A $B"),
    "bert": ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"),
}

# The ids follow the order in SPECIAL_TOKENS: the trainer numbers special tokens first.
LLAMA_TOKEN_IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}

LABELS = {"reranker": 1, "classifier": 3}
"""Number of labels of a head on top of BERT; a single label is a score."""

KINDS = (*SPECIAL_TOKENS, *LABELS)

Array = NDArray[np.float32]
Named = tuple[str, Array]
Random = np.random.Generator


def main() -> int:
    args = parse_arguments()
    out: Path = args.out_dir
    complete = (out / "model.safetensors").exists()
    if complete and not args.force:
        print(f"{out} is already complete")
        return 0
    if out.exists() and not complete and any(out.iterdir()):
        print(f"{out} holds something else than a model", file=sys.stderr)
        return 1

    partial = out.with_name(out.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    write_model(partial, args.kind, args.seed)
    shutil.rmtree(out, ignore_errors=True)
    partial.rename(out)
    size = sum(file.stat().st_size for file in out.iterdir())
    print(f"{out}: {args.kind}, {size / 1e6:.2f} MB, seed {args.seed}")
    return 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Make a tiny model with random weights.")
    parser.add_argument("out_dir", type=Path)
    parser.add_argument("--kind", choices=KINDS, default="llama")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--force", action="store_true", help="make it again")
    return parser.parse_args()


def write_model(folder: Path, kind: str, seed: int) -> None:
    family = "llama" if kind == "llama" else "bert"
    tokenizer = train_tokenizer(tuple(SPECIAL_TOKENS[family].values()), SEQUENCES[family])
    tokenizer.save(str(folder / "tokenizer.json"))
    write_json(folder / "tokenizer_config.json", tokenizer_config(family))
    vocabulary = tokenizer.get_vocab_size()
    random = np.random.default_rng(seed)
    if kind == "llama":
        write_json(folder / "config.json", llama_config(vocabulary))
        write_json(folder / "generation_config.json", LLAMA_TOKEN_IDS)
        tensors = dict(llama_tensors(random, vocabulary, unreadable_ids(tokenizer)))
    else:
        labels = LABELS.get(kind, 0)
        write_json(folder / "config.json", bert_config(vocabulary, labels))
        tensors = dict(bert_tensors(random, vocabulary))
        if labels:
            tensors = {f"bert.{name}": tensor for name, tensor in tensors.items()}
            tensors |= dict(linear(random, "classifier", labels, HIDDEN))
    save_weights(folder, tensors)


def save_weights(folder: Path, tensors: dict[str, Array]) -> None:
    file = folder / "model.safetensors"
    save_file(tensors, file, metadata={"format": "pt"})
    file.chmod(0o644)  # safetensors makes it private, but containers may run as another user


def train_tokenizer(specials: Sequence[str], sequences: tuple[str, str]) -> Tokenizer:
    """Train a byte-level BPE, which can encode any text without unknown tokens.

    Args:
        specials: Its special tokens; they get the first ids.
        sequences: Templates for one text and for a pair of texts, with special tokens.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(specials),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES.splitlines(keepends=True), trainer)
    single, pair = sequences
    tokenizer.post_processor = processors.TemplateProcessing(
        single=single,
        pair=pair,
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in specials],
    )
    return tokenizer


def unreadable_ids(tokenizer: Tokenizer) -> list[int]:
    """The ids of tokens that are not visible ASCII text: specials, white space, parts of UTF-8."""
    texts = [tokenizer.decode([i]) for i in range(tokenizer.get_vocab_size())]
    return [
        i
        for i, text in enumerate(texts)
        if not (text.isascii() and text.isprintable() and text.strip())
    ]


def tokenizer_config(kind: str) -> dict[str, Any]:
    inputs = ["input_ids", "attention_mask"]
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": LENGTH,
        "clean_up_tokenization_spaces": False,
        **SPECIAL_TOKENS[kind],
    }
    if kind == "llama":
        return config | {"model_input_names": inputs, "chat_template": CHAT_TEMPLATE}
    return config | {"model_input_names": [*inputs, "token_type_ids"]}


def llama_config(vocabulary: int) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "torch_dtype": "float32",
        "vocab_size": vocabulary,
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "max_position_embeddings": LENGTH,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
        **LLAMA_TOKEN_IDS,
    }


def bert_config(vocabulary: int, labels: int) -> dict[str, Any]:
    names = {str(index): f"LABEL_{index}" for index in range(labels)}
    head = {"id2label": names, "label2id": {name: int(index) for index, name in names.items()}}
    return {
        "architectures": ["BertForSequenceClassification" if labels else "BertModel"],
        "model_type": "bert",
        "torch_dtype": "float32",
        "vocab_size": vocabulary,
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HIDDEN // HEAD_DIM,
        "max_position_embeddings": LENGTH,
        "type_vocab_size": 2,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
        **(head if labels else {}),
    }


def llama_tensors(random: Random, vocabulary: int, unreadable: list[int]) -> Iterator[Named]:
    yield "model.embed_tokens.weight", weights(random, vocabulary, HIDDEN)
    for layer in range(LAYERS):
        at = f"model.layers.{layer}"
        yield f"{at}.input_layernorm.weight", ones(HIDDEN)
        yield f"{at}.self_attn.q_proj.weight", weights(random, HEADS * HEAD_DIM, HIDDEN)
        yield f"{at}.self_attn.k_proj.weight", weights(random, KV_HEADS * HEAD_DIM, HIDDEN)
        yield f"{at}.self_attn.v_proj.weight", weights(random, KV_HEADS * HEAD_DIM, HIDDEN)
        yield f"{at}.self_attn.o_proj.weight", weights(random, HIDDEN, HEADS * HEAD_DIM)
        yield f"{at}.post_attention_layernorm.weight", ones(HIDDEN)
        yield f"{at}.mlp.gate_proj.weight", weights(random, INTERMEDIATE, HIDDEN)
        yield f"{at}.mlp.up_proj.weight", weights(random, INTERMEDIATE, HIDDEN)
        yield f"{at}.mlp.down_proj.weight", weights(random, HIDDEN, INTERMEDIATE)
    yield "model.norm.weight", ones(HIDDEN)
    head = weights(random, vocabulary, HIDDEN)
    # A zero logit is never the largest: greedy text is always visible and never ends early.
    head[unreadable] = 0
    yield "lm_head.weight", head


def bert_tensors(random: Random, vocabulary: int) -> Iterator[Named]:
    yield "embeddings.word_embeddings.weight", weights(random, vocabulary, HIDDEN)
    yield "embeddings.position_embeddings.weight", weights(random, LENGTH, HIDDEN)
    yield "embeddings.token_type_embeddings.weight", weights(random, 2, HIDDEN)
    yield from norm("embeddings.LayerNorm")
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}"
        for name in ("query", "key", "value"):
            yield from linear(random, f"{at}.attention.self.{name}", HIDDEN, HIDDEN)
        yield from linear(random, f"{at}.attention.output.dense", HIDDEN, HIDDEN)
        yield from norm(f"{at}.attention.output.LayerNorm")
        yield from linear(random, f"{at}.intermediate.dense", INTERMEDIATE, HIDDEN)
        yield from linear(random, f"{at}.output.dense", HIDDEN, INTERMEDIATE)
        yield from norm(f"{at}.output.LayerNorm")
    yield from linear(random, "pooler.dense", HIDDEN, HIDDEN)


def linear(random: Random, name: str, rows: int, columns: int) -> Iterator[Named]:
    yield f"{name}.weight", weights(random, rows, columns)
    yield f"{name}.bias", np.zeros(rows, np.float32)


def norm(name: str) -> Iterator[Named]:
    yield f"{name}.weight", ones(HIDDEN)
    yield f"{name}.bias", np.zeros(HIDDEN, np.float32)


def weights(random: Random, rows: int, columns: int) -> Array:
    # Wide enough to separate the best logit from the next: engines then agree on greedy text.
    return (0.2 * random.standard_normal((rows, columns))).astype(np.float32)


def ones(size: int) -> Array:
    return np.ones(size, np.float32)


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
