"""What a setting is where the user leaves it open: rules that know the data, not its name."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Defaults(NamedTuple):
    """The settings that have a rule."""

    word_dropout: float
    neighbor_share: float
    kl_weight: float
    batch_size: int
    epochs: int


def default_settings(n_docs: int, labelled: float = 0.0) -> Defaults:
    """Choose for a number of training documents and the share of them that have labels.

    Labels lead where three in ten have them. With fewer, a supervised model learns from words as
    `VDSH` does, and from the labels there are. The more labels hold the latent space apart, the
    more weight the divergence may have.

    >>> default_settings(10_000)
    Defaults(word_dropout=0.7, neighbor_share=0.5, kl_weight=0.03, batch_size=200, epochs=13)
    >>> default_settings(10_000, labelled=0.5)
    Defaults(word_dropout=0.2, neighbor_share=0.0, kl_weight=1.0, batch_size=200, epochs=6)
    """
    size = _batch_size(n_docs)
    if are_many(labelled):
        return Defaults(0.2, 0.0, 2 * round(labelled, 2), size, _epochs(n_docs, 650))
    return Defaults(0.7, 0.5, 0.03, size, _epochs(n_docs, 1_300))


def settle(params: Mapping[str, Any], n_docs: int, labelled: float = 0.0) -> dict[str, Any]:
    """Give the settings that were left open, those that are None, what their rules say.

    >>> settle({"epochs": None, "batch_size": 50, "hidden_size": 1000}, 10_000)
    {'epochs': 13, 'batch_size': 50, 'hidden_size': 1000}
    """
    rules = default_settings(n_docs, labelled)._asdict()
    return {n: rules.get(n) if value is None else value for n, value in params.items()}


def learning_on(epochs: int) -> int:
    """Give a model that learns on half of the epochs.

    >>> [learning_on(n) for n in (5, 28)]
    [3, 14]
    """
    return -(-epochs // 2)


def are_many(labelled: float) -> bool:
    """Tell whether this share of labelled documents is enough to lead, and to judge epochs by."""
    return labelled >= 0.3


def _batch_size(n_docs: int) -> int:
    """200, or what makes 800 batches of a large corpus, up to 1,000.

    >>> [_batch_size(n) for n in (10_000, 400_000, 800_000)]
    [200, 500, 1000]
    """
    return min(max(200, n_docs // 800), 1000)


def _epochs(n_docs: int, factor: int) -> int:
    """Divide a factor by the root of the number of documents; from 3 to 20.

    >>> [_epochs(n, 1_300) for n in (1_000, 15_000, 100_000, 800_000)]
    [20, 10, 4, 3]
    """
    return min(max(3, int(factor / n_docs**0.5)), 20)
