"""What all engines share that can put a new model under an old store: names, keys, sentences."""

import json
import re
from pathlib import Path

from vdsh.errors import FolderError, InputError
from vdsh.model import Model
from vdsh.search.id_kinds import show
from vdsh.store.engine import ModelChangedError
from vdsh.store.model import FOLDER, INSIDE

BATCH = 2000  # documents
NEXT, PREVIOUS = "next", "previous"  # what the store says about itself: models that it had or gets
NAME = re.compile(INSIDE)


def name_of(model: Model) -> str:
    """Name a model that comes after the first."""
    return f"{FOLDER}-{model.fingerprint[:12]}"


def check_model(shown: str, model: Model) -> None:
    """Raise where a model cannot encode texts, which is all that a store keeps."""
    if not model.texts_suffice:
        raise InputError(
            f"The new model takes vectors, but '{shown}' keeps texts. Index the documents with "
            "their vectors into a new store."
        )


def check_begun(shown: str, begun: str | None, fingerprint: str, *, restart: bool) -> None:
    """Raise where another model was begun and never finished, unless that is to be dropped."""
    if begun not in (None, fingerprint) and not restart:
        raise InputError(
            f"'{shown}' is being encoded with another model ({begun[:12]}) already. Finish that, "
            "or begin anew with --restart."
        )


def check_own(shown: str, begun: str | None, fingerprint: str) -> None:
    """Raise where somebody else has switched, or begun anew with another model."""
    if begun != fingerprint:
        raise InputError(f"Another process gave '{shown}' a model meanwhile. Nothing was changed.")


def check_codes(found: str | None, known: str) -> None:
    """Raise where the codes of a store are not those that are known."""
    if found != known:
        raise ModelChangedError("The store got another model meanwhile. Open it again.")


def read_previous(shown: str, known: str | None) -> str:
    """Return the name of the model that the store had before, or its absolute path."""
    if known is None:
        raise InputError(
            f"'{shown}' has no earlier model: it never had one, or was compacted since."
        )
    name = str(json.loads(known))
    if not NAME.fullmatch(name) and not Path(name).is_absolute():
        raise FolderError(f"'{shown}' is damaged: its earlier model is {show(name)}.")
    return name
