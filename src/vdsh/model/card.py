"""The README.md of a model folder: what it was trained on, how good it is, how to use it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vdsh import __version__
from vdsh.codes import FIXED, plain_threshold
from vdsh.model.health import describe

if TYPE_CHECKING:
    from vdsh.model.model import Model

_CARD = """\
# A {model.n_bits}-bit {model.name} model

Made by vdsh {version} on {created}. It turns a text into {n_bytes} bytes; texts that are alike get
codes with few differing bits.

## Use
```
vdsh research encode FOLDER documents.jsonl
```
```python
from vdsh import TextHasher
hasher = TextHasher.load("FOLDER")
codes = hasher.encode(["a text", "another text"])   # uint8, shape (2, {n_bytes})
```

## Trained on
- {documents:,} documents{source}{sampled}, {words_per_document:.0f} words each; \
{validation_documents:,} to validate
- vocabulary of {terms:,} terms
- {labels}{vectors}

## Quality
- {quality}
- {epochs}
- {thresholds}
- {balance}
- {health}

## Settings
{settings}
"""

_CARD_OF_VECTORS = """\
# A {model.n_bits}-bit {model.name} model of vectors

Made by vdsh {version} on {created}. It turns a vector of {dimensions:,} dimensions into {n_bytes}
bytes; vectors of high cosine get codes with few differing bits. It hashes no texts.

## Use
```python
from vdsh import VectorHasher
hasher = VectorHasher.load("FOLDER")
codes = hasher.encode(vectors)   # uint8, shape (n, {n_bytes})
```

## Trained on
- {documents:,} vectors of {dimensions:,} dimensions{source}

## Quality
- how good the codes are was not measured: it takes labels, or the vectors themselves
- {balance}
- {health}

## Settings
{settings}
"""


def model_card(model: "Model") -> str:
    """Write the card of a model; of two parts, one after the other."""
    if model.second is not None:
        intro = f"# A model of texts and vectors: codes of {model.n_bits} bits, the texts' first\n"
        return "\n".join([intro, model_card(model.topic), model_card(model.second)])
    facts, learned, settings = model.training, model.learned, {**model.given}
    if not model.takes_vectors:
        settings = {**model.settings, **model.text_settings}
        for name, value in settings.items():
            if value is None:  # left open: what was chosen
                settings[name] = learned.get(f"{name}_")
    told = {
        **facts,
        "model": model,
        "n_bytes": model.n_bits // 8,
        "version": __version__,
        "balance": _balance(learned),
        "health": describe(model.n_bits, learned["unused_bits_"], learned["duplicated_bits_"]),
        "settings": "\n".join(f"- {name}: {value}" for name, value in sorted(settings.items())),
        "source": _source(facts, "from" if model.takes_vectors else "of"),
    }
    if model.takes_vectors:
        return _CARD_OF_VECTORS.format_map(told)
    told |= {
        "sampled": describe_sample(facts),
        "labels": _labels(learned),
        "vectors": _vectors(facts),
        "quality": _quality(model),
        "epochs": _epochs(learned),
        "thresholds": _thresholds(model),
    }
    return _CARD.format_map(told)


def _labels(learned: Mapping[str, Any]) -> str:
    names = learned.get("classes_")
    if names is None:
        return "no labels"
    shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    return f"{len(names)} labels: {shown}"


def _source(facts: Mapping[str, Any], word: str) -> str:
    return f" {word} {facts['source']}" if facts["source"] else ""


def _vectors(facts: Mapping[str, Any]) -> str:
    """Say which vectors taught it, where any did."""
    if (taught := facts.get("vectors")) is None:
        return ""
    size = taught["dimensions"]
    return f"\n- taught by vectors of {size:,} dimensions{_source(taught, 'from')}"


def describe_sample(facts: Mapping[str, Any]) -> str:
    """Say of how many documents these are a sample, where they are one."""
    if "sampled_from" not in facts:
        return ""
    return f", a random sample of {facts['sampled_from']:,}"


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


def _quality(model: "Model") -> str:
    measured = model.training.get("quality", {})
    lines = [f"Warning: {warning}" for warning in measured.get("warnings", ())]
    if "values" in measured:
        values = ", ".join(f"{name} {value:.3f}" for name, value in measured["values"].items())
        lines.insert(0, f"{describe_measure(measured)}: {values}")
    else:
        lines.insert(0, _selection(model))
    return "\n- ".join(lines)


def _selection(model: "Model") -> str:
    """Say by what the kept epoch was chosen."""
    learned, kind = model.learned, model.learned.get("selected_on_", "")
    if not kind:
        return "not validated: no documents were held out"
    score = learned["history_"][learned["best_epoch_"]]["validation"]
    if kind == "precision":
        when = "" if model.settings["threshold"] in FIXED else " in training"
        return (
            f"precision on the validation documents{when}: {score:.3f} (share of the 100 nearest "
            "training documents, or of the nearest tenth, with a label in common)"
        )
    return (
        "how good the codes are was not measured (`vdsh fit` does); the epoch was chosen by how "
        f"well halves of validation documents find the other half, nDCG {score:.3f}"
    )


def _epochs(learned: Mapping[str, Any]) -> str:
    if "best_epoch_" not in learned:
        return "all of the training was kept"
    best, n_epochs = learned["best_epoch_"], len(learned["history_"]) - 1
    text = f"weights of epoch {best} of {n_epochs}" + ("" if best else " (the linear start)")
    return text + (", training was interrupted by hand" if learned["interrupted_"] else "")


def _thresholds(model: "Model") -> str:
    measured, threshold = model.learned["calibration_"], model.settings["threshold"]
    plain = plain_threshold(model.settings)
    text = f"{threshold} thresholds"
    if threshold == "best" and not measured:
        text = f"{plain} thresholds: there were no labels to choose the best with"
    if measured:
        text += (
            f"; precision on validation documents {measured['after']:.3f}, "
            f"{measured['before']:.3f} with {plain} ones"
        )
    return text


def _balance(learned: Mapping[str, Any]) -> str:
    ones = learned["bit_balance_"]
    return (
        f"bits are 1 in {ones.min():.0%} to {ones.max():.0%} of the training documents (balanced: "
        f"50%), {learned['n_distinct_codes_']:,} distinct codes"
    )
