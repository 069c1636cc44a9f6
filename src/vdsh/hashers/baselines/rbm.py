"""StackedRBM: settings of a deep autoencoder of word counts, and an encoder that needs no torch.

R. Salakhutdinov and G. Hinton, "Semantic Hashing", International Journal of Approximate Reasoning
50(7), 2009 (first at the SIGIR 2007 workshop on information retrieval and graphical models).
Training is in `rbm_training.py`.
"""

from dataclasses import dataclass

from vdsh.estimator import check_random_state
from vdsh.hashers.base import Examples, Hasher, Progress, trainer
from vdsh.model.encoders import Layers, scale_lengths


@dataclass(eq=False, repr=False, kw_only=True)
class StackedRBM(Hasher):
    """Hash documents with a deep autoencoder, pretrained as a stack of RBMs; needs no labels.

    Two hidden layers lead from word counts to the code. Each is first learned as a restricted
    Boltzmann machine, the lowest with constrained Poisson units for the counts; then all are
    unrolled into an autoencoder and tuned to tell a document's words from its code, with noise
    that drives the code to 0 and 1.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes, a multiple of 8.
    weighting : {"tfidf", "sqrt-tfidf", "tf", "binary", "given"}, default="given"
        What stands for the counts; "given" takes them as they are.
    threshold : {"median", "sign"}, default="median"
        What turns the input of a code unit into a bit.
    hidden_size : int, default=500
        Units in each of the two hidden layers.
    epochs : int, default=30
        Passes over the training documents for the autoencoder.
    pretraining_epochs : int, optional
        Passes over the training documents for each RBM; by default a third of `epochs`.
    batch_size : int, default=100
    learning_rate : float, default=3e-3
        Step size of Adam, in pretraining and after.
    noise : float, default=4.0
        Standard deviation of the noise that is added to the inputs of the code units.
    random_state : int, RandomState or None
        The same number gives the same codes on the same machine.
    device : str, default="auto"
        Where to train: "cpu", "cuda", or a GPU if there is one.

    Attributes
    ----------
    W1_, b1_, W2_, b2_, W3_, b3_ : ndarray
        The encoder, of shapes (n_terms, hidden_size), (hidden_size, hidden_size),
        (hidden_size, n_bits) and the lengths of their last axes.
    history_ : list of dict
        Stage ("layer 1" to "layer 3", "autoencoder") and loss of each epoch.
    """

    encoder = Layers

    weighting: str = "given"
    hidden_size: int = 500
    epochs: int = 30
    pretraining_epochs: int | None = None
    batch_size: int = 100
    learning_rate: float = 3e-3
    noise: float = 4.0
    device: str = "auto"

    def _fit(self, train: Examples, validation: Examples | None, progress: Progress | None) -> None:
        self._require("at least 1", lambda n: n >= 1, "hidden_size", "epochs", "batch_size")
        self._require("at least 0", lambda n: n >= 0, "pretraining_epochs", "noise")
        self._require("above 0", lambda x: x > 0, "learning_rate")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        inputs = scale_lengths(train.inputs).to_csr()
        learned = trainer("baselines.rbm_training").train(self, inputs, seed, progress)
        vars(self).update(learned)
