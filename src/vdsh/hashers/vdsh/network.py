"""The neural network of the three models (section 3 of the paper), in torch.

Letters follow the paper where it has them: `t1`, `t2` hidden layers, `mu`, `s`, `v`, `G`.
Shapes: B documents, V terms, H hidden nodes, K bits, L labels, P dimensions of places, M samples.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from vdsh.hashers.vdsh.batches import Batch
from vdsh.hashers.vdsh.epochs import Documents
from vdsh.hashers.vdsh.estimators import VDSH


class Posterior(NamedTuple):
    """Q(s | d), a normal distribution per document and dimension."""

    mu: Tensor  # (B, K)
    log_variance: Tensor  # (B, K)

    def sample(self, epsilon: Tensor) -> Tensor:
        """Draw with the reparameterisation s = mu + sigma * epsilon: (M, B, K)."""
        sigma = torch.exp(0.5 * self.log_variance)
        if len(epsilon) == 1:  # sums over a single draw would be steps of their own
            return (self.mu + sigma * epsilon[0]).unsqueeze(0)
        return self.mu + sigma * epsilon


class Network(nn.Module):
    """Encoder and decoders; which of them are there makes VDSH, VDSH-S or VDSH-SP.

    Words are decoded from s by one linear layer, as in the paper, or by a hidden layer of
    `decoder_size` nodes from tanh(s), as labels are then too: the decoders see little more than
    signs, which is what the code keeps. Log sigma^2 goes through a sigmoid (the authors' code), or
    is free (the paper). The generator is a CPU's, so that every device starts alike.
    """

    def __init__(
        self, hasher: VDSH, n_terms: int, n_labels: int, n_places: int, generator: torch.Generator
    ) -> None:
        super().__init__()
        n_bits, hidden_size, decoder_size = hasher.n_bits, hasher.hidden_size_, hasher.decoder_size
        self.bounded, self.keep = hasher.log_variance == "bounded", 1 - float(hasher.dropout_)
        self.private, self.deep = hasher.private, decoder_size > 0

        def weights(rows: int, columns: int) -> nn.Parameter:
            return nn.Parameter(
                nn.init.xavier_uniform_(torch.empty(rows, columns), generator=generator)
            )

        def bias(size: int) -> nn.Parameter:
            return nn.Parameter(torch.zeros(size))

        self.W1, self.b1 = weights(n_terms, hidden_size), bias(hidden_size)
        self.W2, self.b2 = weights(hidden_size, hidden_size), bias(hidden_size)
        self.W3, self.b3 = weights(hidden_size, n_bits), bias(n_bits)  # mu
        self.W4, self.b4 = weights(hidden_size, n_bits), bias(n_bits)  # log sigma
        if self.private:
            self.W5, self.b5 = weights(hidden_size, n_bits), bias(n_bits)  # mu of v
            self.W6, self.b6 = weights(hidden_size, n_bits), bias(n_bits)  # log sigma of v
        if self.deep:
            self.D, self.b_decoder = weights(n_bits, decoder_size), bias(decoder_size)
        self.G, self.b_words = weights(decoder_size or n_bits, n_terms), bias(n_terms)
        if n_labels:
            self.U, self.b_labels = weights(n_bits, n_labels), bias(n_labels)
        if n_places:
            self.P = nn.Parameter(torch.zeros(n_bits, n_places))  # at first it asks for nothing
            self.b_places = bias(n_places)

    @torch.no_grad()
    def expect(self, documents: Documents) -> None:
        """Start the decoders at the frequencies of words and labels, and in the middle of places.

        From zero, where the paper starts, the quickest way to make frequent words and rare labels
        fit is to push whole dimensions of s to one side, and those then tell nothing apart.
        """
        if self.deep:
            self.b_words.copy_(documents.word_frequencies().log())
        if self.deep and hasattr(self, "b_labels"):
            self.b_labels.copy_(documents.label_frequencies().logit())
        if hasattr(self, "b_places"):
            self.b_places.copy_(documents.places.mean(0))

    def kept(self, n_docs: int, generator: torch.Generator) -> Tensor | None:
        """Draw which nodes of t2 are not dropped, scaled: (B, H), or None for all of them."""
        if self.keep == 1:
            return None
        shape, device = (n_docs, len(self.b2)), self.b2.device
        return (torch.rand(shape, generator=generator, device=device) < self.keep) / self.keep

    def noise(self, n_docs: int, n_samples: int, generator: torch.Generator) -> list[Tensor]:
        """Draw the epsilon of s and, where there is one, of v: (M, B, K) each; for no draw, 0."""
        shape, device = (max(n_samples, 1), n_docs, len(self.b3)), self.b3.device
        draws = range(2 if self.private else 1)
        if not n_samples:
            return [torch.zeros(shape, device=device) for _ in draws]
        return [torch.randn(shape, generator=generator, device=device) for _ in draws]

    def hidden(self, batch: Batch, kept: Tensor | None = None) -> Tensor:
        """Compute t2 of shape (B, H), of which in training some nodes are `kept`."""
        t1 = torch.relu(batch.project(self.W1) + self.b1)  # (B, H)
        t2 = torch.relu(_linear(t1, self.W2, self.b2))  # (B, H)
        return t2 if kept is None else t2 * kept

    def posterior(self, t2: Tensor) -> Posterior:
        """Give Q(s | d) from the hidden layer."""
        return self._normal(t2, self.W3, self.b3, self.W4, self.b4)

    def private_posterior(self, t2: Tensor) -> Posterior:
        """Give Q(v | d) from the hidden layer (VDSH-SP)."""
        return self._normal(t2, self.W5, self.b5, self.W6, self.b6)

    def word_logits(self, s: Tensor) -> Tensor:
        """Decode words: s of shape (M, B, K) to unnormalised log P(w | s) of shape (M, B, V)."""
        if self.deep:
            s = torch.relu(_linear(torch.tanh(s), self.D, self.b_decoder))  # (M, B, D)
        return _linear(s, self.G, self.b_words)

    def label_logits(self, s: Tensor) -> Tensor:
        """Decode labels: s of shape (M, B, K) to the log-odds of each label, (M, B, L)."""
        return _linear(torch.tanh(s) if self.deep else s, self.U, self.b_labels)

    def place(self, s: Tensor) -> Tensor:
        """Decode where documents lie: s of shape (M, B, K) to the mean of the place, (M, B, P)."""
        return _linear(torch.tanh(s) if self.deep else s, self.P, self.b_places)

    def _normal(
        self, t2: Tensor, W: Tensor, b: Tensor, W_sigma: Tensor, b_sigma: Tensor
    ) -> Posterior:
        spread = _linear(t2, W_sigma, b_sigma)
        # bounded: log sigma^2 in (0, 1); free: the linear layer is log sigma itself
        log_variance = torch.sigmoid(spread) if self.bounded else 2 * spread
        return Posterior(_linear(t2, W, b), log_variance)


def _linear(x: Tensor, W: Tensor, b: Tensor) -> Tensor:
    """Compute x W + b, with the last axis of x: (..., H) to (..., K).

    Biases are added in passing, but on a GPU not to a sum over many nodes, where that is slower.
    """
    if x.is_cuda and len(W) >= W.shape[1]:
        return x @ W + b
    return torch.addmm(b, x.reshape(-1, len(W)), W).view(*x.shape[:-1], -1)
