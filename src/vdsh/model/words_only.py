"""What stands for the model of a store that has not learned one: its documents have no codes."""

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from vdsh.codes import Codes
from vdsh.errors import InputError
from vdsh.model.model import Model
from vdsh.text.stopwords import SMART
from vdsh.text.tokenizer import tokenize

NO_MODEL = 64 * "0"  # its fingerprint


class NotLearnedError(InputError):
    """Something needs codes, and the store has none yet."""

    def __init__(self, message: str = "") -> None:
        super().__init__(
            message
            or "This store has not learned codes yet. Run `vdsh learn STORE` (in Python: "
            "store.learn())."
        )


class WordsOnly(Model):
    """A model of no bits. As for a model of vectors, a text has no code: its words are found.

    Whatever else is asked of it raises `NotLearnedError`.
    """

    fingerprint = NO_MODEL

    def __init__(self) -> None:
        self.name = "none"
        self.n_bits = self.n_inputs = 0
        self.words = ()
        self.training = self.given = {}
        self.profile = None
        self.takes_vectors = True

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotLearnedError

    def to_files(self) -> dict[str, bytes]:
        """Give no files: a store keeps nothing of it."""
        return {}

    def unknown_words(self, text: str) -> list[str]:
        """List all words of a text that are not stop words."""
        return [word for word in dict.fromkeys(tokenize(text)) if word not in SMART]

    def counts(self, texts: Sequence[str], vectors: Any = None) -> NoReturn:
        """Raise: there is nothing that could make a code."""
        raise NotLearnedError

    def encode_and_count(self, texts: Sequence[str], vectors: Any = None) -> tuple[Codes, int]:
        """Give each text a code of no bits."""
        if vectors is not None:
            raise NotLearnedError
        return np.zeros((len(texts), 0), np.uint8), 0
