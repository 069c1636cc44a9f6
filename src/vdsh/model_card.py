"""The README.md of a model folder: what it was trained on, how good it is, how to use it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from vdsh import __version__
from vdsh.codes import FIXED
from vdsh.hashers.health import describe

if TYPE_CHECKING:
    from vdsh.hashers import Hasher
    from vdsh.text import BagOfWords

_CARD = """\
# A {n_bits}-bit {model} model

Made by vdsh {version} on {created}. It turns a text into {n_bytes} bytes; texts that are alike get
codes with few differing bits.

## Use
```
vdsh encode FOLDER documents.jsonl
```
```python
from vdsh import TextHasher
hasher = TextHasher.load("FOLDER")
codes = hasher.encode(["a text", "another text"])   # uint8, shape (2, {n_bytes})
```

## Trained on
- {documents:,} documents{source}, {words:.0f} counted words each, and {validation:,} to validate
- vocabulary of {terms:,} terms
- {labels}

## Quality
- {quality}
- {epochs}
- {thresholds}
- {balance}
- {health}

## Settings
{settings}
"""


def model_card(
    model: str, vectorizer: "BagOfWords", hasher: "Hasher", facts: dict[str, Any]
) -> str:
    """Write the card of a model, from its fitted parts and the facts of its training."""
    settings = {**hasher.get_params(), **vectorizer.get_params()}
    for name, value in settings.items():
        if value is None:  # left open: what was chosen
            settings[name] = getattr(hasher, f"{name}_", None)
    return _CARD.format(
        model=model,
        n_bits=hasher.n_bits,
        n_bytes=hasher.n_bits // 8,
        version=__version__,
        created=facts["created"],
        documents=facts["documents"],
        source=f" of {facts['source']}" if facts["source"] else "",
        words=facts["words_per_document"],
        validation=facts["validation_documents"],
        terms=facts["terms"],
        labels=_labels(hasher),
        quality=_quality(hasher, facts.get("quality", {}), recalibrated="recalibrated" in facts),
        epochs=_epochs(hasher),
        thresholds=_thresholds(hasher, facts.get("recalibrated")),
        balance=_balance(hasher),
        health=_health(hasher),
        settings="\n".join(f"- {name}: {value}" for name, value in sorted(settings.items())),
    )


def _labels(hasher: "Hasher") -> str:
    names = getattr(hasher, "classes_", None)
    if names is None:
        return "no labels"
    shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    return f"{len(names)} labels: {shown}"


def describe_measure(quality: Mapping[str, Any]) -> str:
    """Say what `vdsh fit` measured; see `vdsh.evaluation.Quality`."""
    k, queries, documents = quality["k"], quality["queries"], quality["documents"]
    if quality["measure"] == "labels":
        return (
            f"Precision at {k} of {queries:,} held-out documents that search {documents:,} "
            "(share a label with the query)"
        )
    return (
        f"How often half of a held-out document finds its other half among the {k} nearest of "
        f"{documents:,} ({queries:,} tried)"
    )


def _quality(hasher: "Hasher", measured: Mapping[str, Any], *, recalibrated: bool) -> str:
    lines = [f"Warning: {warning}" for warning in measured.get("warnings", ())]
    if "values" in measured:
        values = ", ".join(f"{name} {value:.3f}" for name, value in measured["values"].items())
        lines.insert(0, f"{describe_measure(measured)}: {values}")
    else:
        lines.insert(0, _selection(hasher, recalibrated=recalibrated))
    return "\n- ".join(lines)


def _selection(hasher: "Hasher", *, recalibrated: bool) -> str:
    """Say by what the kept epoch was chosen."""
    kind, history = getattr(hasher, "selected_on_", ""), getattr(hasher, "history_", [])
    if not kind:
        return "not validated: no documents were held out"
    score = history[hasher.best_epoch_ - 1]["validation"]
    if kind == "precision":
        when = "" if hasher.threshold in FIXED and not recalibrated else " in training"
        return (
            f"precision on the validation documents{when}: {score:.3f} (share of the 100 nearest "
            "training documents, or of the nearest tenth, with a label in common)"
        )
    return (
        "how good the codes are was not measured (`vdsh fit` does); the epoch was chosen by the "
        f"lower bound of the validation documents, {score:.1f} nats each"
    )


def _epochs(hasher: "Hasher") -> str:
    if not hasattr(hasher, "best_epoch_"):
        return "all of the training was kept"
    text = f"weights of epoch {hasher.best_epoch_} of {len(hasher.history_)}"
    return text + (", training was interrupted by hand" if hasher.interrupted_ else "")


def _thresholds(hasher: "Hasher", again: dict[str, Any] | None) -> str:
    measured = getattr(hasher, "calibration_", {})
    text = f"{hasher.threshold} thresholds"
    if hasher.threshold == "best" and not measured:
        text = f"{hasher.plain_threshold} thresholds: there were no labels to choose the best with"
    if again:
        source = f" of {again['source']}" if again["source"] else ""
        text += (
            f", learned again on {again['created']} from {again['documents']:,} documents{source} "
            "(codes differ from those before: index again what was indexed then)"
        )
    if measured:
        old = "those before" if again else f"{hasher.plain_threshold} ones"
        text += (
            f"; precision on validation documents {measured['after']:.3f}, "
            f"{measured['before']:.3f} with {old}"
        )
    return text


def _health(hasher: "Hasher") -> str:
    if not hasattr(hasher, "unused_bits_"):
        return "not looked for unused and duplicated bits: made by an older version"
    return describe(hasher.n_bits, hasher.unused_bits_, hasher.duplicated_bits_)


def _balance(hasher: "Hasher") -> str:
    ones = np.asarray(hasher.bit_balance_)
    return (
        f"bits are 1 in {ones.min():.0%} to {ones.max():.0%} of the training documents (balanced: "
        f"50%), {hasher.n_distinct_codes_:,} distinct codes"
    )
