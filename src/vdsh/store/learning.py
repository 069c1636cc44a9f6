"""A store that gets another model: one that was learned elsewhere, or from its own documents."""

import os
from collections.abc import Callable
from contextlib import closing
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from vdsh.errors import GoneError, InputError
from vdsh.model import Model
from vdsh.store.model import load_model
from vdsh.store.reindex import PREVIOUS, check_previous, check_takes_texts
from vdsh.store.searching import Access

if TYPE_CHECKING:
    from vdsh.pipeline import TextHasher

CHANGES_MODEL = "Another process is learning codes for, encoding or compacting"


class Learning(Access):
    """How a store gets another model."""

    def is_in_place(self) -> bool:
        """Say whether the store is still where it was opened, not removed or replaced."""
        maintenance = self._engine.maintenance
        return maintenance is None or maintenance.is_in_place()

    def reindex(
        self,
        hasher: "TextHasher | Model | str | os.PathLike[str] | None" = None,
        *,
        restart: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Encode all documents with another model, which then is the store's own.

        Readers and writers go on with the old codes until one transaction switches, and have the
        new model from then on; documents that are written meanwhile are encoded too. Other threads
        use this handle as before. Killed in the middle, it goes on where it stopped when it is
        called again with the same model.

        Parameters
        ----------
        hasher : TextHasher, Model or path of a model folder, optional
            The new model; None takes the one that the store had before, which is kept until
            `compact`.
        restart : bool, default=False
            Drop what was begun with another model and never finished.
        progress : callable, optional
            Called with the number of documents of each batch.
        """
        with self.alone("model", CHANGES_MODEL):
            self._encode_anew(hasher, restart=restart, progress=progress)

    def _encode_anew(
        self, hasher: Any, *, restart: bool, progress: Callable[[int], None] | None
    ) -> None:
        """Do what `reindex` does, by one who holds the lock."""
        if not self._ask_once(lambda _: self.is_in_place()):
            raise GoneError(f"'{self._engine.shown}' was removed or replaced. Open it again.")
        with closing(self._reopen()) as engine:  # a connection of its own: nobody waits for it
            facts = engine.meta()
            if hasher is None:
                model = engine.models.load(check_previous(engine.shown, facts.get(PREVIOUS)))
            else:
                model = load_model(hasher)
            check_takes_texts(engine.shown, model)
            engine.models.begin(model, restart=restart)
            count, report = partial(engine.count, None), progress or (lambda _: None)
            engine.models.encode_all(model, count, report)
        self._follow(model)

    def learn(
        self,
        *,
        bits: int | None = None,
        labels: bool = False,
        model: "TextHasher | Model | str | os.PathLike[str] | None" = None,
        method: str | None = None,
        random_state: int = 0,
        embed: str | None = None,
        progress: bool = True,
    ) -> None:
        """Learn a model from the store's own documents, and answer by words and codes from then on.

        Searches and writers go on meanwhile, and one transaction switches; see `reindex`. Where it
        is interrupted, the store answers as before.

        Parameters
        ----------
        bits : int, optional
            Length of the codes. By default 128; 64 where fewer than 128 documents are different,
            32 where fewer than 64 are. At least 50 are needed.
        labels : bool, default=False
            Learn from the documents' labels too.
        model : TextHasher, Model or path of a model folder, optional
            Take this one, and learn nothing.
        method : str, optional
            A method of `TextHasher`; the best one by default.
        random_state : int, default=0
        embed : str, optional
            An embedding model, as "model2vec:FOLDER" or "sentence-transformers:NAME". The vectors
            that it makes of documents become 256 more bits of their codes, and it embeds queries
            too. By default the one that the store has; "none" learns without.
        progress : bool, default=True
            Draw bars.
        """
        from vdsh.progress import counting_bar

        with self.alone("model", CHANGES_MODEL):
            if model is None:
                # What learns uses stores, so it is asked for by name.
                fitting = import_module("vdsh.fitting")
                how = {"method": method, "random_state": random_state, "progress": progress}
                model = fitting.fit_store(self, bits, labels=labels, embed=self._find(embed), **how)
            elif embed is not None:
                raise InputError("Give a model, or embed to learn one with; not both.")
            n_documents = self._ask(lambda engine: engine.count(None))
            with counting_bar("encoding", n_documents, enabled=progress) as bar:
                step = partial(bar.advance, bar.task_ids[0])
                self._encode_anew(model, restart=True, progress=step)

    def _find(self, embed: str | None) -> str | None:
        """Name the embedding model to learn with: the given one, or the store's own."""
        own = self._model.model
        if embed is None and own.second is not None and not own.embedder:
            raise InputError(
                f"'{self._engine.shown}' has codes of vectors that were given, which it does not "
                'keep. Name an embedding model with embed, or learn without vectors: embed="none".'
            )
        known = own.embedder if own.second is not None else None
        return None if embed == "none" else embed or known
