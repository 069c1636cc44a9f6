"""What a setting is where the user leaves it open: rules that know the data, not its name."""

from typing import NamedTuple


class Usual(NamedTuple):
    """How hard training is made, and how much the divergence counts."""

    word_dropout: float
    neighbor_share: float
    kl_weight: float


_BY_WORDS = Usual(word_dropout=0.8, neighbor_share=0.5, kl_weight=0.03)
_BY_LABELS = Usual(word_dropout=0.5, neighbor_share=0.0, kl_weight=1.0)


def usual_settings(labelled: float) -> Usual:
    """Choose for a share of labelled training documents: labels lead where three in ten have them.

    With fewer, a supervised model learns from words as `VDSH` does, and from the labels there are.

    >>> usual_settings(0.1).neighbor_share, usual_settings(1.0).neighbor_share
    (0.5, 0.0)
    """
    return _BY_LABELS if are_many(labelled) else _BY_WORDS


def are_many(labelled: float) -> bool:
    """Tell whether this share of labelled documents is enough to lead, and to judge epochs by."""
    return labelled >= 0.3


def usual_batch_size(n_docs: int) -> int:
    """Choose a batch size: 200, or what makes 800 batches of a large corpus, up to 1,000.

    >>> [usual_batch_size(n) for n in (10_000, 400_000, 800_000)]
    [200, 500, 1000]
    """
    return min(max(200, n_docs // 800), 1000)


def usual_epochs(n_docs: int) -> int:
    """Choose how many epochs show three million documents, from 5 to 50.

    >>> [usual_epochs(n) for n in (10_000, 100_000, 800_000)]
    [50, 30, 5]
    """
    return min(max(5, 3_000_000 // n_docs), 50)
