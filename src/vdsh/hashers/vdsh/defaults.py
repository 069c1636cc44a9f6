"""What a setting is where the user leaves it open: rules that know the data, not its name."""

from collections.abc import Mapping
from typing import Any


def default_settings(n_docs: int, labelled: float = 0.0, n_bits: int = 32) -> dict[str, Any]:
    """Choose for a number of training documents and the share of them that have labels.

    Labels lead where half of the documents have them. Where one in ten has, or fewer, a supervised
    model learns from words as `VDSH` does, and from the labels there are; in between, settings are
    in between. The more labels hold the latent space apart, the more weight the divergence may
    have. Labels are learned in about 500 batches, and need the larger network. Without them, the
    longer a code, the shorter the steps; from 64 bits on fewer nodes are dropped, at 128 none.
    Two nodes a bit is the least that the linear start needs. A batch has 200 documents, or what
    makes 800 batches of a large corpus, up to 1,000.

    >>> default_settings(10_000)  # doctest: +NORMALIZE_WHITESPACE
    {'hidden_size': 500, 'learning_rate': 0.004, 'dropout': 0.2, 'word_dropout': 0.7,
     'neighbor_share': 0.3, 'kl_weight': 0.03, 'batch_size': 200, 'epochs': 15}
    >>> list(default_settings(10_000, labelled=0.5).values())
    [1000, 0.004, 0.2, 0.2, 0.0, 1.0, 200, 10]
    >>> list(default_settings(10_000, labelled=0.3).values())[3:6]
    [0.45, 0.15, 0.315]
    >>> [list(default_settings(10_000, n_bits=n).values())[:3:2] for n in (96, 128, 1024)]
    [[500, 0.1], [500, 0.0], [2048, 0.0]]
    >>> [default_settings(n)["batch_size"] for n in (10_000, 400_000, 800_000)]
    [200, 500, 1000]
    """
    lead = min(max((labelled - 0.1) / 0.4, 0.0), 1.0)

    def between(words: float, labels: float) -> float:
        return round(words + lead * (labels - words), 12)

    usual = (min(max(3.0, each), 20.0) for each in (1_500 / n_docs**0.5, 100_000 / n_docs))
    return {
        "hidden_size": max(int(between(500, 1000)), 2 * n_bits),
        "learning_rate": between(4e-3 * min(1.0, 32 / n_bits) ** 0.5, 4e-3),
        "dropout": between(0.2 * min(max(2 - n_bits / 64, 0.0), 1.0), 0.2),
        "word_dropout": between(0.7, 0.2),
        "neighbor_share": between(0.3, 0.0),
        "kl_weight": between(0.03, 2 * round(labelled, 2)),
        "batch_size": min(max(200, n_docs // 800), 1000),
        "epochs": _epochs(between(*usual), n_bits),
    }


def settle(params: Mapping[str, Any], n_docs: int, labelled: float = 0.0) -> dict[str, Any]:
    """Give the settings that were left open, those that are None, what their rules say.

    >>> settle({"n_bits": 32, "epochs": None, "batch_size": 50}, 10_000)
    {'n_bits': 32, 'epochs': 15, 'batch_size': 50}
    """
    rules = default_settings(n_docs, labelled, params["n_bits"])
    return {n: rules.get(n) if value is None else value for n, value in params.items()}


def _epochs(usual: float, n_bits: int) -> int:
    """Take more for short codes: a quarter of 32 bits takes twice as many to tell as much.

    >>> [_epochs(10.6, n) for n in (8, 16, 32, 128)]
    [21, 14, 10, 10]
    """
    return int(usual * max(1.0, 32 / n_bits) ** 0.5)
