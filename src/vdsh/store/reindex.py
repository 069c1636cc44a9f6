"""Another model under a store: new codes are made beside the old ones, and one step switches.

All engines share this loop; their `Models` take the short steps of it. What is written meanwhile
has no new code, so it is met like any other document; what comes at the very end is encoded by
`switch`, while others wait to write. Whoever starts again goes on where the last run stopped.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from vdsh.codes import Codes
from vdsh.errors import InputError
from vdsh.model import Model, WordsOnly

BATCH = 2000  # documents
PASSES = 3  # at most, over what others have written meanwhile; then they have to wait
Report = Callable[[int], None]  # called with the number of documents of each batch
NEXT, PREVIOUS = "next", "previous"  # keys of the store's facts: fingerprints of other models


class Unencoded(NamedTuple):
    """A document without a code of the new model; `key` is what its engine knows it by."""

    key: Any
    text: str


class Models(Protocol):
    """The models that an engine keeps beside its documents."""

    shown: str  # the store, for people

    def load(self, fingerprint: str) -> Model:
        """Load a model; raise `ModelChangedError` where it is no longer kept."""

    def begin(self, model: Model, *, restart: bool) -> None:
        """Keep another model beside the store's own, and make room for its codes.

        Where that was done before, it goes on. `restart` drops what was begun with another one.
        """

    def unencoded(self, fingerprint: str, after: Any, size: int) -> list[Unencoded]:
        """Return the next documents without a code of the new model, behind a key or None."""

    def put_codes(self, fingerprint: str, batch: Sequence[Unencoded], codes: Codes) -> None:
        """Keep the new codes of documents, but for those that have changed since."""

    def switch(self, model: Model) -> int:
        """Encode what is left while nobody writes, and make the new model the store's own.

        Returns how many were left. The model before is kept until `forget`. From then on all that
        comes with codes of the old model gets `ModelChangedError`.
        """

    def forget(self) -> None:
        """Remove models that the store does not use, and codes that were never finished."""

    def encode_all(self, model: Model, count: Callable[[], int], report: Report) -> None:
        """Encode all documents, which `count` counts, with a model that was begun; switch to it."""
        for _ in range(PASSES):
            if self.encode_rest(model, count(), report) < BATCH:
                break
        report(self.switch(model))

    def encode_rest(
        self, model: Model, most: int | None = None, report: Report = lambda _: None
    ) -> int:
        """Encode what has no new code yet, batch by batch; return how many documents that were.

        With `most` it ends after so many, or with a batch that is not full: or it would run after
        those who write.
        """
        name, after, done = model.fingerprint, None, 0
        while (most is None or done < most) and (batch := self.unencoded(name, after, BATCH)):
            self.put_codes(name, batch, model.encode([one.text for one in batch]))
            report(len(batch))
            after, done = batch[-1].key, done + len(batch)
            if most is not None and len(batch) < BATCH:
                break
        return done

    def check_begun(self, begun: str | None, fingerprint: str, *, restart: bool) -> None:
        """Raise where another model was begun and never finished, unless that is to be dropped."""
        if begun not in (None, fingerprint) and not restart:
            raise InputError(
                f"'{self.shown}' is being encoded with another model ({begun[:12]}) already. "
                "Finish that run, or discard it with --restart."
            )

    def check_own(self, begun: str | None, fingerprint: str) -> None:
        """Raise where somebody else has switched, begun anew with another model, or compacted."""
        if begun != fingerprint:
            raise InputError(
                f"Another process changed the model of '{self.shown}' meanwhile, or compacted it. "
                "Nothing was changed. Start again to put this model under it."
            )


def switched(facts: Mapping[str, str], model: Model) -> dict[str, str]:
    """Say what is new of a store that gets another model; indexes of its old codes do not fit."""
    new = {"uuid": uuid.uuid4().hex, "fingerprint": model.fingerprint, "n_bits": str(model.n_bits)}
    return new | {PREVIOUS: facts["fingerprint"]}


def check_takes_texts(shown: str, model: Model) -> None:
    """Raise where a model cannot encode texts, which is all that a store keeps."""
    if not model.texts_suffice:
        raise InputError(
            f"The new model takes vectors, but '{shown}' keeps texts. Index the documents with "
            "their vectors into a new store."
        )


def check_previous(shown: str, known: str | None) -> str:
    """Return the fingerprint of the model that the store had before."""
    if known in (None, WordsOnly.fingerprint):
        raise InputError(
            f"'{shown}' has no earlier model: it never had one, or was compacted since."
        )
    return known
