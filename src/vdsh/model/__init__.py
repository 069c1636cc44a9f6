"""Trained models, served without the code that trained them.

`Model` is what a model folder holds. Its `encoders` make scores of weighted terms; `network` is the
encoder of VDSH in numpy and a kernel, and its decoder, which makes words of latent vectors.
`WordsOnly` stands for a model where none was learned yet.
"""

from vdsh.model.encoders import Posterior
from vdsh.model.model import Model, as_model
from vdsh.model.network import Decoder
from vdsh.model.words_only import NotLearnedError, WordsOnly

__all__ = ["Decoder", "Model", "NotLearnedError", "Posterior", "WordsOnly", "as_model"]
