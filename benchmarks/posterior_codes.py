"""Make any number of codes as a real model would: documents of 20 Newsgroups, seen through doubt.

    VDSH_DATA=path/to/data python benchmarks/posterior_codes.py FOLDER

trains the models and keeps what they say of each document: the probability that a bit is one,
under the posterior Q(s | d). `draw` then makes codes: a training document is drawn, and each of its
bits by that probability. So codes crowd where documents do, and bits are noisy where the model
doubts. Queries are the codes of test documents, which the model has not seen, as they are.
"""

import argparse
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.datasets import load
from vdsh.explain import bit_probabilities
from vdsh.jit import kernel
from vdsh.pipeline import TextHasher

Codes = NDArray[np.uint8]
BLOCK = 1 << 20  # codes of one seed: any number of them begins with the same codes
MODELS = {"vdsh-64": ("vdsh", 64), "vdsh-128": ("vdsh", 128), "vdsh-s-64": ("vdsh-s", 64)}
EPOCHS = 10  # after these the codes hardly change, and nobody waits for an hour


class Doubts(NamedTuple):
    """Probabilities that bits are one, shape (n_docs, n_bits), and the codes of new documents."""

    probabilities: NDArray[np.float32]
    queries: Codes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("models", nargs="*", default=list(MODELS), metavar="model")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for model in options.models:
        start = time.perf_counter()
        doubts = learn(*MODELS[model])
        np.savez_compressed(options.folder / f"{model}.npz", **doubts._asdict())
        print(f"{model}: {time.perf_counter() - start:.0f} s", flush=True)


def read(folder: Path, model: str) -> Doubts:
    """Read what `main` has kept."""
    with np.load(folder / f"{model}.npz") as kept:
        return Doubts(kept["probabilities"], kept["queries"])


def learn(method: str, n_bits: int) -> Doubts:
    """Train with default settings but for the epochs."""
    data = load("20newsgroups")
    hasher = TextHasher(method, n_bits=n_bits, random_state=0, epochs=EPOCHS)
    hasher.fit(data.train.texts, data.train.labels if method == "vdsh-s" else None)
    return Doubts(
        bit_probabilities(hasher, data.train.texts).astype(np.float32),
        hasher.encode(data.test.texts),
    )


def draw(probabilities: NDArray[np.float32], n: int, seed: int) -> Codes:
    """Draw codes of shape (n, n_bytes), block by block."""
    likely = np.round(probabilities * 2**16).clip(0, 2**16 - 1).astype(np.uint16)
    codes = np.empty((n, probabilities.shape[1] // 8), np.uint8)
    for number, start in enumerate(range(0, n, BLOCK)):
        # A state of xorshift must not be zero.
        _draw(likely, codes[start : start + BLOCK], np.uint64(seed * 2**32 + 2 * number + 1))
    return codes


@kernel()
def _draw(likely: NDArray[np.uint16], codes: Codes, seed: np.uint64) -> None:
    state = seed * np.uint64(0x9E3779B97F4A7C15)
    for i in range(codes.shape[0]):
        state = _next(state)
        doc = np.int64((state >> np.uint64(32)) % np.uint64(likely.shape[0]))
        for byte in range(codes.shape[1]):
            value = 0
            for bit in range(8):
                if bit % 4 == 0:
                    state = _next(state)
                chance = (state >> np.uint64(16 * (bit % 4))) & np.uint64(0xFFFF)
                value = 2 * value + (chance < likely[doc, 8 * byte + bit])
            codes[i, byte] = value


@kernel()
def _next(state: np.uint64) -> np.uint64:
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    return state ^ (state << np.uint64(17))


if __name__ == "__main__":
    main()
