"""VDSH, VDSH-S and VDSH-SP: settings, and an encoder that needs no torch.

S. Chaidaroon and Y. Fang, "Variational Deep Semantic Hashing for Text Documents", SIGIR 2017.
"""

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from vdsh.errors import InputError
from vdsh.estimator import check_is_fitted, check_random_state
from vdsh.hashers.base import Examples, Hasher, Progress, trainer
from vdsh.hashers.vdsh.defaults import default_settings, settle
from vdsh.hashers.vdsh.related import MOST_NEIGHBOURS
from vdsh.model.encoders import Network, Posterior


@dataclass(eq=False, repr=False, kw_only=True)
class VDSH(Hasher):
    """Hash documents with a variational autoencoder over their words; needs no labels.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes, a multiple of 8.
    weighting : {"tfidf", "sqrt-tfidf", "damped-tfidf", "tf", "binary", "given"}
        What the encoder sees; "given" takes the values as they are. By default "damped-tfidf";
        "tfidf" in the supervised models.
    threshold : {"median", "sign", "best"}
        What turns the mean of a latent dimension into a bit: its median over the training
        documents, 0, or what gives the best precision on labelled validation documents (where
        there are none: 0, or the median with the paper's decoder). By default "sign"; "best" in
        the supervised models. "median" suits the paper's decoder.
    hidden_size : int, optional
        Nodes in each of the two hidden layers. By default 500, 1,000 where labels lead (see
        `VDSH_S`), or two a bit where that is more: with fewer than two a bit some bits of a linear
        start begin by chance.
    decoder_size : int, default=200
        Nodes of a hidden layer in the word decoder, which then sees tanh(s), so that the signs,
        which are all that a code keeps, say as much as they can. 0 is the paper's linear decoder
        of s.
    epochs : int, optional
        Passes over the training documents, at most. By default 1,500 over the root of the number
        of documents, or 100,000 over the number where labels lead; from 3 to 20. Below 32 bits up
        to twice as many. Where texts are short (below 15 different words), codes have 16 bits or
        more, and there are no labels, the linear start is kept, which no training improves; one
        epoch teaches its decoder.
    patience : int, default=10
        Stop after so many epochs without a better validation score, which is precision at 100. The
        linear start has a score too; an epoch replaces it that is better by two standard errors.
        Where fewer than three in ten training or validation documents have labels, there is no
        score, and the last epoch is kept.
    batch_size : int, optional
        By default 200, more for a large corpus: as many as make 800 batches of it, up to 1,000.
    start : {"linear", "random"}, default="linear"
        Whether training starts as the linear map from words to the places of documents, or to
        their labels (the linear start), or from random weights. Without neighbours and labels it
        starts from random weights.
    learning_rate : float, optional
        Step size of Adam. By default 0.004; above 32 bits less, down to 0.002 at 128, but not
        where labels lead.
    schedule : {"linear", "constant"}, default="linear"
        Whether the step size falls to 0 until the last epoch or stays.
    dropout : float, optional
        Share of the second hidden layer dropped in training. By default 0.2; above 64 bits less,
        down to 0 at 128, but not where labels lead.
    word_dropout : float, optional
        Share of a document's words that the encoder does not see in training; the decoder still
        has to produce them. By default 0.7; 0.2 where labels lead.
    n_neighbors : int, default=50
        Most related training documents, by words, LSA and word vectors; 100 at most, and no more
        than the root of the number of documents.
    neighbor_share : float, optional
        Share of each reconstruction target that comes from one of them, drawn anew each epoch; a
        document without labels borrows those of the neighbour too. 0 is the paper, whose codes
        know of no other documents: no neighbours are looked for, no labels borrowed, and the
        linear start knows labels only. Else codes also have to tell where among these a document
        lies, with a weight that grows with the share up to 0.3. By default 0.3; 0 where labels
        lead.
    n_samples : int, default=1
        M, the draws from Q(s | d) per document and step; with 0 the decoder sees the mean.
    kl_weight : float, optional
        Weight of the divergence; 1 is the lower bound proper. By default 0.03; where labels lead,
        twice the share of documents that have any.
    kl_warmup : int, default=50
        Updates over which that weight rises from 0.
    log_variance : {"bounded", "free"}, default="bounded"
        "bounded" keeps sigma^2 between 1 and e as in the authors' code, "free" is the paper's text.
    target : {"binary", "counts"}, default="binary"
        Whether the decoder has to produce each distinct word once or as often as it occurs.
    random_state : int, RandomState or None
        The same number gives the same codes on the same machine.
    device : str, default="auto"
        Where to train: "cpu", "cuda", or a GPU if there is one.

    Attributes
    ----------
    W1_, b1_, W2_, b2_, W3_, b3_, W4_, b4_ : ndarray
        The encoder; W3_ gives mu, W4_ the spread.
    G_, b_words_ : ndarray of shape (n_bits or decoder_size, n_terms) and (n_terms,)
        The word decoder's last layer.
    D_, b_decoder_ : ndarray of shape (n_bits, decoder_size) and (decoder_size,)
        Its hidden layer, where it has one.
    hidden_size_, learning_rate_, dropout_, word_dropout_, neighbor_share_ : float or int
        The values that were used; `kl_weight_`, `batch_size_` and `epochs_` too.
    history_ : list of dict
        Loss, divergence and validation score of each epoch; the first row is the start.
    best_epoch_ : int
        The epoch the weights come from; 0 is the linear start.
    selected_on_ : str
        What chose it: "precision", or "" where no labels could.
    interrupted_ : bool
        Whether training was stopped by hand.
    """

    private: ClassVar[bool] = False
    taught: ClassVar[bool] = True
    encoder = Network

    weighting: str = "damped-tfidf"
    threshold: str = "sign"
    hidden_size: int | None = None
    decoder_size: int = 200
    epochs: int | None = None
    patience: int = 10
    batch_size: int | None = None
    start: str = "linear"
    learning_rate: float | None = None
    schedule: str = "linear"
    dropout: float | None = None
    word_dropout: float | None = None
    n_neighbors: int = 50
    neighbor_share: float | None = None
    n_samples: int = 1
    kl_weight: float | None = None
    kl_warmup: int = 50
    log_variance: str = "bounded"
    target: str = "binary"
    device: str = "auto"

    def posterior(self, X: Any) -> Posterior:
        """Return mean and standard deviation of Q(s | d) for each document and bit."""
        check_is_fitted(self, "thresholds_")
        inputs = self._weigh(self._validate(X, reset=False))
        return Network.of(self.learned(), self.get_params()).posterior(inputs)

    def _fit(self, train: Examples, validation: Examples | None, progress: Progress | None) -> None:
        self._check_settings()
        labelled = train.labels.known.mean() if self.supervised and train.labels else 0.0
        settled = settle(self.get_params(), train.counts.shape[0], float(labelled))
        for name in default_settings(1):
            setattr(self, f"{name}_", np.asarray(settled[name]).item())
        if train.vectors is not None and not self.neighbor_share_:
            warnings.warn(
                "The vectors are not used: neighbor_share is 0, the default of a supervised model "
                "if half of the documents have labels. Set it, for example to 0.3.",
                stacklevel=3,
            )
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        learned = trainer("vdsh.training").train(self, train, validation, seed, progress)
        vars(self).update(learned)

    def _check_settings(self) -> None:
        choices = {
            "log_variance": ("bounded", "free"),
            "target": ("binary", "counts"),
            "start": ("linear", "random"),
            "schedule": ("linear", "constant"),
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                wanted = " or ".join(f'"{value}"' for value in allowed)
                raise InputError(f"{name} must be {wanted}. Got {getattr(self, name)!r}.")
        sizes = ("hidden_size", "epochs", "patience", "batch_size", "n_neighbors")
        self._require("at least 1", lambda n: n >= 1, *sizes)
        self._require("0 or more", lambda n: n >= 0, "n_samples", "decoder_size")
        self._require(f"at most {MOST_NEIGHBOURS}", lambda n: n <= MOST_NEIGHBOURS, "n_neighbors")
        self._require("above 0", lambda x: x > 0, "learning_rate")
        shares = ("dropout", "word_dropout", "neighbor_share")
        self._require("from 0 to below 1", lambda x: 0 <= x < 1, *shares)


@dataclass(eq=False, repr=False, kw_only=True)
class VDSH_S(VDSH):
    """Hash documents so that those with the same labels get similar codes.

    Words and labels are decoded from the same latent vector. Documents whose labels are None
    train without the label term. Labels lead where half of the documents have them; up to one in
    ten the defaults are those of `VDSH`, in between they are in between.

    Parameters
    ----------
    label_weight : float, default=100
        Weight of the label term; 1 is the lower bound proper and under-uses the labels, because a
        document has a hundred words but one label.

    All other parameters as in `VDSH`.

    Attributes
    ----------
    classes_ : list of str
        The labels.
    U_, b_labels_ : ndarray of shape (n_bits, n_labels) and (n_labels,)
        The label decoder.

    All other attributes as in `VDSH`.
    """

    supervised: ClassVar[bool] = True

    weighting: str = "tfidf"
    threshold: str = "best"
    label_weight: float = 100.0


class VDSH_SP(VDSH_S):
    """Hash documents as `VDSH_S`, with a private latent vector for what labels do not explain.

    Words are decoded from s + v, labels and the code from s alone. Parameters and attributes as
    in `VDSH_S`.
    """

    private: ClassVar[bool] = True
