"""The rule of `docs/relevance.md`, word by word and document by document."""

from collections import Counter

import numpy as np
import pytest

from vdsh.codes import unpack
from vdsh.text.stopwords import SMART
from vdsh.text.tokenizer import tokenize


def bag_of(text):
    words = [word for word in tokenize(text) if word not in SMART]
    bag = Counter()
    for place, word in enumerate(words):
        bag[word] += 4 if place < 8 else 2 if place < 24 else 1
    return bag


def word_shares(texts, words, *, most_counted=255, longest=65_534):
    """Say how much of a query each document answers, BM25 out of the most there can be.

    `texts` maps a name to a text, `words` a word to how often the query has it.
    """
    bags = {name: bag_of(text) for name, text in texts.items()}
    lengths = {name: min(bag.total(), longest) for name, bag in bags.items()}
    mean = max(1, sum(lengths.values())) / max(1, len(texts))
    df = {word: sum(word in bag for bag in bags.values()) for word in words}
    idf = {w: max(float(np.log((len(texts) - n + 0.5) / (n + 0.5))), 1e-6) for w, n in df.items()}
    there = sorted(w for w in words if df[w])
    chosen = sorted(there, key=lambda w: -words[w] * idf[w])[:32]
    weights = {w: 2.2 * (min(words[w], 2) * idf[w]) for w in chosen}
    shares = {}
    for name, bag in bags.items():
        share = 0.0
        for word in chosen:
            n = min(bag[word], most_counted)
            base = 1.2 * (1 - 0.75) + 1.2 * 0.75 / mean * lengths[name]
            share += weights[word] * (n / (n + base))
        shares[name] = share / max(sum(weights.values()), 1e-6)
    return shares, [word for word in sorted(words) if not df[word]]


def has(text, phrase):
    tokens, phrase = tokenize(text), list(phrase)
    return any(tokens[i : i + len(phrase)] == phrase for i in range(len(tokens)))


def fits(query, text):
    wanted = all(has(text, phrase) for phrase in query.phrases)
    return wanted and not any(has(text, phrase) for phrase in query.without)


def slow_scores(documents, query, chances, passes=lambda name: True):
    """Say of all documents that may be found whether they are only related, and their scores.

    `documents` maps an id to a text and a code, `query` is a `WordQuery`, `chances` the model's,
    or None where it knows no word of the query.
    """
    shares, _ = word_shares({name: text for name, (text, _) in documents.items()}, query.words)
    allowed = {n for n, (text, _) in documents.items() if passes(n) and fits(query, text)}
    if query.phrases:
        allowed = {name for name in allowed if shares[name]}
    bits = {name: unpack(np.array([documents[name][1]], np.uint8))[0] for name in allowed}
    voters = sorted((n for n in allowed if shares[n]), key=lambda n: (-shares[n], n))[:10]
    if voters:
        trust = shares[voters[0]]
        votes = [(shares[name] / trust) ** 6 for name in voters]
        pairs = zip(votes, voters, strict=True)
        agreed = sum(vote * bits[name] for vote, name in pairs) / sum(votes)
        n_bits = len(bits[voters[0]])
        own = np.full(n_bits, 0.5) if chances is None else np.asarray(chances, float)
        chances = (1 - trust) * own + trust * agreed
    if chances is None:
        return {}
    chances = np.asarray(chances, float)
    agreed = {name: max(0, 1 - 2 * np.abs(bits[name] - chances).mean()) for name in allowed}
    nearest = max(agreed.values(), default=0)
    best = max((shares[name] for name in allowed), default=0) or nearest
    scores = {
        name: np.sqrt((shares[name] ** 2 + 0.6 * best**2 * agreed[name] / (nearest or 1)) / 1.6)
        for name in allowed
    }
    least = round(max(scores.values(), default=0), 9) / 2
    return {
        name: (not shares[name] or round(score, 9) < least, score) for name, score in scores.items()
    }


def assert_best(hits, expected, k):
    """Hits are the k best of all, those that are only related last, in order, ties by id."""
    best = sorted((related, -score) for related, score in expected.values())[:k]
    assert [-hit.score for hit in hits] == pytest.approx([score for _, score in best], abs=1e-9)
    for hit in hits:
        related, score = expected[hit.id]
        assert (hit.related, hit.score) == (related, pytest.approx(score, abs=1e-9))
    assert [*hits] == sorted(hits, key=lambda hit: (hit.related, -hit.score, hit.id))


def chances_of(model, text):
    """Give the model's chances for a text, or None where it knows no word of it."""
    counts = model.counts([text])
    return model.codes_and_chances(counts)[1][0] if counts.indptr[-1] else None
