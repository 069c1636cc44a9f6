"""`Hasher`: what every method shares. Counts go in, bits come out."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vdsh.codes import (
    Bits,
    Codes,
    Scores,
    binarize,
    check_n_bits,
    check_threshold,
    pack,
    plain_threshold,
)
from vdsh.errors import InputError, needing
from vdsh.estimator import Estimator, check_is_fitted, check_matrix
from vdsh.hashers.thresholds import calibrate
from vdsh.labels import Labels, read_labels
from vdsh.metrics.by_threshold import ValidationSearch
from vdsh.model.encoders import Encoder, Probabilistic
from vdsh.model.health import bit_health, sample
from vdsh.model.vectors import check_vectors
from vdsh.text.counts import (
    WITH_FREQUENCIES,
    Sparse,
    canonical,
    inverse_document_frequency,
    weigh,
)

_MOST_CELLS = 200_000_000  # of the labels of all documents, which networks have as floats
_ENOUGH = 250  # documents that tell how unsure the scores of a model are on average


class Examples(NamedTuple):
    """Documents to learn from, or to validate with, as a hasher sees them."""

    inputs: csr_array  # (n_docs, n_terms): weighted terms, the `d` of the paper
    counts: csr_array  # (n_docs, n_terms): the same documents as they were given
    labels: Labels | None
    # (n_docs, n_dimensions): what else is known of the documents in training.
    vectors: NDArray[np.float32] | None = None


class Report(NamedTuple):
    """How far training is, for a progress bar."""

    epoch: int  # the running one, from 1
    epochs: int  # how many there are at most
    done: float = 0.0  # the finished share of this epoch
    loss: float | None = None  # mean per document so far, where the method has one; so `kl`
    kl: float | None = None
    # The newest validation score, see `selects_on`; None before the first.
    validation: float | None = None
    selects_on: str = ""  # "precision" or "" when nothing chooses an epoch
    unit: str = "epoch"  # what `epoch` counts: "epoch", "bit", "layer", ...


Progress = Callable[[Report], None]


@dataclass(eq=False, repr=False)
class Hasher(Estimator, ABC):
    """Base of all hashers, a scikit-learn transformer from counts to bits.

    A subclass lists its settings, which as a dataclass it stores as they are given, learns in
    `_fit` and names the `encoder` that makes scores of what it learned; the rest is here.

    Attributes
    ----------
    thresholds_ : ndarray of shape (n_bits,)
        A score above its threshold gives the bit 1. Learned from the training documents, so one
        new document can be hashed.
    idf_ : ndarray of shape (n_terms,)
        Only with the weightings "tfidf" and "sqrt-tfidf".
    bit_balance_ : ndarray of shape (n_bits,)
        Share of the training documents that have a 1 there.
    classes_ : list of str
        The labels, of a supervised hasher.
    n_distinct_codes_ : int
        How many different codes the training documents have.
    unused_bits_, duplicated_bits_ : list
        Bits that tell no documents apart, and pairs of a bit and the earlier one that it repeats;
        see `vdsh.model.health`.
    calibration_ : dict
        Precision at 100 of the validation documents with plain thresholds, `before` they were
        chosen, and `after`; empty if not measured.
    """

    supervised: ClassVar[bool] = False
    taught: ClassVar[bool] = False  # whether vectors may say which documents are alike
    signed: ClassVar[bool] = False  # whether X may be vectors, with weighting "given" or "tf"
    encoder: ClassVar[type[Encoder]]  # what makes scores of the arrays that were learned

    n_bits: int = 32
    _: KW_ONLY
    weighting: str = "tfidf"
    threshold: str = "median"
    random_state: Any = None

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        validation: Any = None,
        vectors: Any = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from documents.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_docs, n_terms)
            Word counts; not negative. For `LSH`, `ITQ` and `SpectralHashing` with weighting
            "given" or "tf" also vectors.
        y : sequence, optional
            Per document a label, a list of labels, or None where unknown. An unsupervised hasher
            never learns from them but may use them to measure itself on the validation data.
        validation : tuple (X, y), optional
            Held-out documents to choose the best epoch with, and the thresholds where
            `threshold` is "best"; y may be None, and the thresholds are then plain ones.
        vectors : array of shape (n_docs, n_dimensions), optional
            A teacher, such as embeddings of the documents: together with the words it says in
            training which documents are alike. Hashing needs none. For `VDSH` and its kin.
        progress : callable, optional
            Called with a `Report` now and then.
        """
        self._forget()
        check_n_bits(self.n_bits)
        check_threshold(self.threshold)
        counts = self._validate(X, reset=True)
        self._check_enough(counts)
        labels = self._check_labels(y, counts.shape[0])
        if self.weighting in WITH_FREQUENCIES:
            self.idf_ = inverse_document_frequency(counts)
        train = Examples(self._weigh(counts), counts, labels, self._check_vectors(vectors, counts))
        held_out = self._validation_examples(validation, labels)
        if self.supervised and labels is not None:
            self.classes_ = list(labels.names)
        self._fit(train, held_out, progress)
        scores = self._scores(train.inputs)
        search = None
        if self.threshold == "best":
            search = self._validation_search(scores, train, held_out)
        self.thresholds_, self.calibration_ = calibrate(
            scores, self.threshold, search, plain=plain_threshold(self.get_params())
        )
        self._look_at_bits(scores, train)
        return self

    def transform(self, X: Any) -> Bits:
        """Hash documents to 0/1 bits of shape (n_docs, n_bits)."""
        return binarize(self.scores(X), self.thresholds_)

    def encode(self, X: Any) -> Codes:
        """Hash documents to packed codes of shape (n_docs, n_bits // 8)."""
        return pack(self.transform(X))

    def scores(self, X: Any) -> Scores:
        """Compute the numbers that `thresholds_` turns into bits, of shape (n_docs, n_bits)."""
        check_is_fitted(self, "thresholds_")
        return self._scores(self._weigh(self._validate(X, reset=False)))

    @abstractmethod
    def _fit(self, train: Examples, validation: Examples | None, progress: Progress | None) -> None:
        """Learn everything but the thresholds."""

    def _scores(self, inputs: Sparse) -> Scores:
        """Compute scores from weighted terms."""
        return self._encoder().scores(inputs)

    def _encoder(self) -> Encoder:
        return self.encoder.of(self.learned(), self.get_params())

    def learned(self) -> dict[str, Any]:
        """Return everything that was learned, by attribute name."""
        return {
            name: value
            for name, value in vars(self).items()
            if name.endswith("_") and not name.startswith("_")
        }

    def _validate(self, X: Any, *, reset: bool) -> csr_array:
        X = check_matrix(self, X, reset=reset, negative=self._takes_vectors())
        counts = canonical(csr_array(X))
        if counts.nnz < 2**31:  # slicing columns leaves wide indices, which few libraries take
            counts.indices = counts.indices.astype(np.int32, copy=False)
            counts.indptr = counts.indptr.astype(np.int32, copy=False)
        return counts

    def _takes_vectors(self) -> bool:
        return self.signed and self.weighting in ("given", "tf")

    def _forget(self) -> None:
        """Remove what an earlier fit learned, so that nothing of it outlives other settings."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _weigh(self, counts: csr_array) -> csr_array:
        return weigh(counts, self.weighting, getattr(self, "idf_", None))

    def _validation_search(
        self, scores: Scores, train: Examples, validation: Examples | None
    ) -> ValidationSearch | None:
        """Prepare to measure thresholds; None where labels are missing."""
        if validation is None:
            return None
        queries = self._scores(validation.inputs)
        return ValidationSearch.of(scores, train.labels, queries, validation.labels)

    def _look_at_bits(self, scores: Scores, train: Examples) -> None:
        """Note how balanced, used and different the bits of the training documents are."""
        bits = binarize(scores, self.thresholds_)
        self.bit_balance_ = bits.mean(axis=0, dtype=np.float32)
        codes = np.ascontiguousarray(pack(bits))
        self.n_distinct_codes_ = len(set(codes.view(f"V{codes.shape[1]}").ravel().tolist()))
        noise = None
        encoder = self._encoder()
        if isinstance(encoder, Probabilistic):  # it knows how unsure its scores are
            rows = sample(len(scores), _ENOUGH)
            noise = (encoder.posterior(train.inputs[rows]).sigma ** 2).mean(axis=0)
        health = bit_health(scores, bits, noise)
        self.unused_bits_, self.duplicated_bits_ = health.unused, health.duplicated

    def _require(self, what: str, is_right: Callable[[Any], bool], *names: str) -> None:
        """Raise for a setting that is given and not right."""
        for name in names:
            value = getattr(self, name)
            if value is not None and not is_right(value):
                raise InputError(f"{name} must be {what}. Got {value!r}.")

    def _check_enough(self, counts: csr_array) -> None:
        if counts.shape[0] < self.n_bits:
            # scikit-learn's checks want the word "sample" where there is one.
            got = f"{counts.shape[0]} documents" if counts.shape[0] != 1 else "one (one sample)"
            raise InputError(
                f"{self.n_bits} bits need at least {self.n_bits} documents to learn from. "
                f"Got {got}."
            )
        if not counts.nnz:
            raise InputError(
                f"There is nothing to learn from: none of the {counts.shape[0]} documents has a "
                "term. Give documents with words."
            )

    def _check_vectors(self, vectors: Any, counts: csr_array) -> NDArray[np.float32] | None:
        if vectors is None:
            return None
        if not self.taught:
            raise InputError(
                f"{type(self).__name__} learns from words alone and takes no vectors. Leave them "
                "out, or choose a model that does (vdsh)."
            )
        return check_vectors(vectors, counts.shape[0])

    def _check_labels(self, y: Any, n_docs: int) -> Labels | None:
        """Read the labels and see that a supervised hasher can learn something from them."""
        if y is None:
            if self.supervised:
                raise InputError(
                    f"{type(self).__name__} requires y to be passed, but the target y is None: it "
                    "learns from labels. Give them, or choose an unsupervised model (vdsh)."
                )
            return None
        labels = _read_labels(y, n_docs)
        if self.supervised and len(labels.names) < 2:
            raise InputError(
                f"{type(self).__name__} needs at least two different labels (1 class or none "
                f"cannot be told apart). Got {len(labels.names)}: {labels.names}."
            )
        return _most_frequent(labels) if self.supervised else labels

    def _validation_examples(self, validation: Any, train: Labels | None) -> Examples | None:
        if validation is None:
            return None
        X, y = validation
        counts = self._validate(X, reset=False)
        n_docs = counts.shape[0]
        y = [None] * n_docs if y is None else y
        labels = _read_labels(y, n_docs, None if train is None else train.names, "validation ")
        return Examples(self._weigh(counts), counts, None if train is None else labels)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = not self._takes_vectors()
        tags.target_tags.required = self.supervised
        return tags


def trainer(name: str) -> Any:
    """Import a module below `vdsh.hashers` that trains with torch, or say how to install torch."""
    with needing("Training", "torch", "train"):
        module = import_module(f"vdsh.hashers.{name}")
    return module


def _most_frequent(labels: Labels) -> Labels:
    """Leave out the rarest labels where all of them would not fit into memory, and say so."""
    most = max(2, _MOST_CELLS // max(1, len(labels.known)))
    if len(labels.names) <= most:
        return labels
    warnings.warn(
        f"There are {len(labels.names):,} different labels for {len(labels.known):,} documents; "
        f"the {most:,} that most documents have are learned. Are they labels, and not ids?",
        stacklevel=4,
    )
    order = np.argsort(-labels.frequencies(), kind="stable")
    return labels.only(np.sort(order[:most]))


def _read_labels(y: Any, n_docs: int, names: Sequence[str] | None = None, kind: str = "") -> Labels:
    labels = read_labels(y, names)
    if len(labels.known) != n_docs:
        raise InputError(
            f"Got {n_docs} {kind}documents but {len(labels.known)} labels. Give one per document, "
            "None where it is not known."
        )
    return labels
