"""Trained models, served without the code that trained them.

`Model` is what a model folder holds. Its `encoders` make scores of weighted terms, its `decoder`
makes words of latent vectors; `network` is the encoder of VDSH in numpy and a kernel.
"""

from vdsh.model.decoder import Decoder
from vdsh.model.encoders import Posterior
from vdsh.model.model import Model, as_model

__all__ = ["Decoder", "Model", "Posterior", "as_model"]
