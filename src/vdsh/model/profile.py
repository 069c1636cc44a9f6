"""What a model keeps of the documents it learned from, to detect drift by (`vdsh.model.drift`).

`hold_out` chooses which documents are kept from training.
"""

import zlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes
from vdsh.errors import InputError

PREFIX = "profile_"  # of its arrays' names in a model folder


class Looks(NamedTuple):
    """What documents look like to a model; a row each."""

    codes: Codes  # (n_docs, n_bytes)
    unknown: NDArray[Any]  # share of a document's words, without stop words, not in the vocabulary
    certainty: NDArray[Any]  # mean probability of a document's bits; 1 without a posterior
    nearest: NDArray[Any]  # Hamming distance to the nearest of the profile's landmarks


class Profile(NamedTuple):
    """What held-out documents looked like to a model when it learned."""

    held_out: Looks
    landmarks: Codes  # of training documents: the nearest is always looked for among the same ones
    seen: NDArray[np.uint32]  # sorted hashes of all texts that it learned from or were held out

    def unseen(self, texts: list[str]) -> list[str]:
        """Choose the texts that were not there when the model learned.

        Of a million seen texts, one new text in 4,000 has the hash of one, and is left out too.
        """
        hashes = hash_texts(texts)
        places = np.searchsorted(self.seen, hashes).clip(max=len(self.seen) - 1)
        return [texts[i] for i in np.flatnonzero(self.seen[places] != hashes)]

    def with_seen(self, texts: Iterable[str]) -> "Profile":
        """Count more texts among those that were there when the model learned."""
        return self._replace(seen=np.union1d(self.seen, hash_texts(texts)))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a model folder holds."""
        parts = self.held_out._asdict() | {"landmarks": self.landmarks, "seen": self.seen}
        return {f"{PREFIX}{name}": array for name, array in parts.items()}


def hash_texts(texts: Iterable[str]) -> NDArray[np.uint32]:
    """Hash texts to 32 bits each (CRC-32)."""
    hashes = (zlib.crc32(text.encode("utf-8", "surrogatepass")) for text in texts)
    return np.fromiter(hashes, np.uint32)


def read_profile(arrays: Mapping[str, NDArray[Any]], n_bits: int) -> Profile | None:
    """Read what `to_arrays` wrote; raise a ValueError where it cannot be of such a model."""
    parts = {name.removeprefix(PREFIX): array for name, array in arrays.items()}
    if not parts:
        return None
    landmarks, seen, held_out = parts.pop("landmarks"), parts.pop("seen"), Looks(**parts)
    n_docs = len(held_out.codes)
    for codes in (held_out.codes, landmarks):
        if codes.dtype != np.uint8 or codes.shape != (len(codes), n_bits // 8) or not len(codes):
            raise ValueError("the codes of its profile do not fit")
    if any(part.shape != (n_docs,) or not np.isfinite(part).all() for part in held_out[1:]):
        raise ValueError("the measures of its profile do not fit")
    if seen.dtype != np.uint32 or seen.ndim != 1 or not len(seen):
        raise ValueError("the hashes of its profile do not fit")
    return Profile(held_out, landmarks, seen)


LEAST_TO_HOLD_OUT = 100  # with fewer documents every one is needed to learn from


def hold_out(n_documents: int, seed: Any, share: float = 0.1) -> tuple[list[int], list[int]]:
    """Choose the rows to learn from, and a random tenth to validate with; of few, none.

    >>> [len(rows) for rows in hold_out(200, seed=0)]
    [180, 20]
    >>> [len(rows) for rows in hold_out(99, seed=0)]
    [99, 0]
    """
    if isinstance(share, bool) or not 0 <= share < 1:
        raise InputError(
            "validation must be texts, texts with labels, a share from 0 to below 1, or None. "
            f"Got {share!r}."
        )
    cut = int(n_documents * share)
    if n_documents < LEAST_TO_HOLD_OUT or not cut:
        return list(range(n_documents)), []
    rng = seed if isinstance(seed, np.random.RandomState) else np.random.RandomState(seed)
    order = rng.permutation(n_documents)
    return np.sort(order[cut:]).tolist(), order[:cut].tolist()


def take(values: Any, rows: Any) -> Any:
    """Take some rows of an array or a list, of nothing nothing."""
    if values is None or hasattr(values, "ndim"):
        return None if values is None else np.asarray(values)[rows]
    return [values[i] for i in rows]
