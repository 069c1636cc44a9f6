"""The README.md of a model folder: what it was trained on, how good it is, how to use it."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from vdsh import __version__
from vdsh.codes import FIXED, plain_threshold
from vdsh.model.health import describe

if TYPE_CHECKING:
    from vdsh.model.model import Model

_CARD = """\
# A {model.n_bits}-bit {model.name} model of {kind}s

Made by vdsh {version} on {facts[created]}. It turns a {kind} into {n_bytes} bytes; {kind}s that are
alike get codes with few differing bits.

## Use
```python
from vdsh import {hasher}
hasher = {hasher}.load("FOLDER")
codes = hasher.encode({kind}s)   # uint8, shape (n, {n_bytes})
```

## Trained on
{trained}

## Quality
{quality}

## Settings
{settings}
"""


def model_card(model: "Model") -> str:
    """Write the card of a model; of two parts, one after the other."""
    if model.second is not None:
        intro = f"# A model of texts and vectors: codes of {model.n_bits} bits, the texts' first\n"
        return "\n".join([intro, model_card(model.topic), model_card(model.second)])
    facts, learned = model.training, model.learned
    if model.takes_vectors:
        kind, settings = "vector", model.given
        size, source = facts["dimensions"], _source(facts, "from")
        trained = [f"{facts['documents']:,} vectors of {size:,} dimensions{source}"]
        quality = ["how good the codes are was not measured: it takes labels"]
    else:
        kind, settings = "text", {**model.settings, **model.text_settings}
        # What was left open was chosen.
        settings |= {n: learned.get(f"{n}_") for n, value in settings.items() if value is None}
        trained = _trained(facts, learned)
        quality = [*_quality(model), _epochs(learned), _thresholds(model)]
    wasted = describe(model.n_bits, learned["unused_bits_"], learned["duplicated_bits_"])
    return _CARD.format(
        model=model,
        facts=facts,
        kind=kind,
        hasher=f"{kind.title()}Hasher",
        version=__version__,
        n_bytes=model.n_bits // 8,
        trained=_listed(trained),
        quality=_listed([*quality, _balance(learned), wasted]),
        settings=_listed(f"{name}: {value}" for name, value in sorted(settings.items())),
    )


def _listed(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _trained(facts: Mapping[str, Any], learned: Mapping[str, Any]) -> list[str]:
    """Say what texts taught it, with which labels and vectors."""
    said = [
        f"{facts['documents']:,} documents{_source(facts, 'of')}{describe_sample(facts)}, "
        f"{facts['words_per_document']:.0f} words each; {facts['validation_documents']:,} to "
        "validate",
        f"vocabulary of {facts['terms']:,} terms",
        _labels(learned),
    ]
    if n_empty := facts.get("documents_without_words"):  # older models do not say
        said.append(f"{n_empty:,} of these documents have no known word: their codes say nothing")
    if (taught := facts.get("vectors")) is not None:
        size = taught["dimensions"]
        said.append(f"taught by vectors of {size:,} dimensions{_source(taught, 'from')}")
    return said


def _labels(learned: Mapping[str, Any]) -> str:
    names = learned.get("classes_")
    if names is None:
        return "no labels"
    shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    return f"{len(names)} labels: {shown}"


def _source(facts: Mapping[str, Any], word: str) -> str:
    return f" {word} {facts['source']}" if facts["source"] else ""


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


def _quality(model: "Model") -> list[str]:
    measured = model.training.get("quality", {})
    warnings = [f"Warning: {warning}" for warning in measured.get("warnings", ())]
    if "values" not in measured:
        return [_selection(model), *warnings]
    values = ", ".join(f"{name} {value:.3f}" for name, value in measured["values"].items())
    return [f"{describe_measure(measured)}: {values}", *warnings]


def _selection(model: "Model") -> str:
    """Say by what the kept epoch was chosen."""
    learned, kind = model.learned, model.learned.get("selected_on_", "")
    if not kind and "best_epoch_" in learned and model.training["validation_documents"]:
        return (
            "how good the codes are was not measured (`vdsh fit` does); without labels nothing "
            "tells which epoch is best"
        )
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
    if measured:
        return (
            f"{threshold} thresholds; precision on validation documents {measured['after']:.3f}, "
            f"{measured['before']:.3f} with {plain} ones"
        )
    if threshold == "best":
        return f"{plain} thresholds: there were no labels to choose the best with"
    return f"{threshold} thresholds"


def _balance(learned: Mapping[str, Any]) -> str:
    ones = learned["bit_balance_"]
    return (
        f"bits are 1 in {ones.min():.0%} to {ones.max():.0%} of the training documents (balanced: "
        f"50%), {learned['n_distinct_codes_']:,} distinct codes"
    )
