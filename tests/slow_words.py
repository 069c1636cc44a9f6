"""The rule of `docs/relevance.md`, word by word and document by document.

Nothing here comes from `vdsh.words`: stems are Snowball's, all else is written out.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from functools import cache, lru_cache
from itertools import pairwise

import numpy as np
import pytest
import Stemmer

from vdsh.codes import unpack
from vdsh.documents.split import split_text
from vdsh.text.languages import STOP_WORDS
from vdsh.text.tokenizer import find_spans, tokenize

OTHER = {
    "ß": "ss",
    "æ": "ae",
    "œ": "oe",
    "ø": "o",
    "đ": "d",
    "ð": "d",
    "ł": "l",
    "ı": "i",
    "ς": "σ",
}


def plain(word):
    """Take accents away."""
    letters = unicodedata.normalize("NFD", "".join(OTHER.get(letter, letter) for letter in word))
    kept = [letter for letter in letters if not 0x300 <= ord(letter) < 0x370]
    return unicodedata.normalize("NFC", "".join(kept))


@cache
def stem(word, language="english"):
    if language == "none":
        return plain(word)
    stemmer = Stemmer.Stemmer(language, 0)
    if language == "english":
        return stemmer.stemWord(plain(word))
    return plain(stemmer.stemWord(word))


@cache
def is_stop_word(word, language="english"):
    stops = STOP_WORDS.get(language, ())
    return word in stops or word in [plain(stop) for stop in stops] or not plain(word)


def exact(word, language="english"):
    """Give the term of the very word, where its stem says less."""
    same = plain(word) == stem(word, language) or is_stop_word(word, language)
    return [] if same else [f"={plain(word)}"]


def parts_of(text):
    """Give the tokens of a text, and for each what identifiers give beside it: pieces and names."""
    letters = unicodedata.normalize("NFC", text).replace("\u2019", "'")
    cased = "".join(c if c < "\x80" else c.lower()[0] for c in letters)
    lower = "".join(c.lower() if c < "\x80" else c for c in cased)
    spans = find_spans(lower, shortest=1)
    tokens, pieces, names = [span.token for span in spans], [], []
    first = 0
    for number, (start, stop, _) in enumerate(spans):
        word, cuts = cased[start:stop], [0]
        for i in range(1, len(word) if re.search("[A-Z]", word) else 0):
            rest = word[i : i + 3]
            new = not "A" <= word[i - 1] <= "Z" or re.fullmatch("[A-Z][a-z][a-z]", rest)
            cuts += [i] if "A" <= word[i] <= "Z" and new else []
        if len(cuts) > 1:
            found = [word[i:j].lower() for i, j in zip(cuts, [*cuts[1:], None], strict=True)]
            found = [piece for piece in found if len(piece.encode()) > 1]
            pieces += [(number, piece) for piece in found if plain(piece)]
        last = number + 1 == len(spans)
        if not last and re.fullmatch(r"[-#&+./:@_\\]{1,3}", lower[stop : spans[number + 1].start]):
            continue
        sign = (
            "#" if lower[stop : stop + 1] == "#" else "++" if lower[stop : stop + 2] == "++" else ""
        )
        name = lower[spans[first].start : stop] + sign
        inside = names_inside(lower, spans[first : number + 1], len(sign))
        found = [name] * bool(sign or number > first) + inside
        names += [(number, one) for one in found if len(one.encode(errors="replace")) <= 100]
        first = number + 1
    return tokens, pieces, names


def names_inside(lower, spans, n_sign):
    """Give identifiers among joined tokens, and neighbours joined by a full stop or a colon."""
    joints = [lower[a.stop : b.start] for a, b in pairwise(spans)]
    groups = [[spans[0]]]
    for span, joint in zip(spans[1:], joints, strict=True):
        if set(joint) == {"_"}:
            groups[-1].append(span)
        else:
            groups.append([span])
    names = []
    for a, b in pairwise(groups) if len(groups) > 2 else ():
        if set(lower[a[-1].stop : b[0].start]) <= set("_.:"):
            names.append(lower[a[0].start : b[-1].stop])
    for group in groups:
        start, stop = group[0].start, group[-1].stop
        before = re.search(r"_*\Z", lower[max(0, start - 2) : start])[0]
        after = re.match("_*", lower[stop : stop + 2])[0]
        name = before + lower[start:stop] + after
        whole = len(groups) == 1 and not before and len(after) == n_sign == 0
        if "_" in name and not whole:
            names.append(name)
    return names


@lru_cache(maxsize=2000)
def bag_of(text, language="english", *, of_passage=False):
    """Count the terms of a text; its opening counts more. Return its length, too."""
    tokens, pieces, names = parts_of(text)
    bag, length, place, more = Counter(), 0, 0, defaultdict(list)
    for number, piece in pieces:
        more[number].append(stem(piece, language))
    for number, name in names:
        more[number].append(f"={name}")
    for number, word in enumerate(tokens):
        terms = exact(word, language) + more[number]
        weight = 1
        if not is_stop_word(word, language):
            weight = 1 if of_passage or place >= 24 else 4 if place < 8 else 2
            place, length = place + 1, length + weight
            terms.append(stem(word, language))
        for term in terms:
            bag[term] += weight
    return bag, length


def terms_of(query, language="english"):
    """Give the terms that a query looks for, with their weights and the words they come from."""
    words = {w: min(n, 2) for w, n in query.words.items() if not is_stop_word(w, language)}
    weights, origin = Counter(), {}
    for word, n in words.items():
        itself = exact(word, language) if len(words) <= 16 else []
        n *= 0.5 if word in query.parts else 1
        weights[stem(word, language)] += n * (0.85 if itself else 1)
        origin.setdefault(stem(word, language), word)
        for term in itself:
            weights[term] += n * 0.15
            origin.setdefault(term, word)
    for name in query.names:
        if re.search(r"[-#&+./:@_\\]", name):
            weights[f"={name.lower()}"] += 1.5 if is_identifier(name) else 0.5
            origin.setdefault(f"={name.lower()}", name)
    most = {t: 2 if t[0] != "=" or origin[t] in query.names else 0.3 for t in weights}
    return {term: min(weight, most[term]) for term, weight in weights.items()}, origin


def is_identifier(name):
    return bool(re.search(r"[#+.:@_\\]", name)) or not re.search("[-&/]", name)


def name_term(texts, query, language="english"):
    """Give the term of the name that is all of a query, as documents have it; None for others."""
    names = [name for name in query.names if is_identifier(name)]
    if len(names) != 1 or query.phrases or query.without or query.unfinished:
        return None
    name = names[0].lower()
    others = query.words.keys() - set(query.parts) - {name}
    if any(not is_stop_word(word, language) for word in others):
        return None
    if re.search(r"[-#&+./:@_\\]", name):
        return f"={name}"
    terms = [*exact(name, language), stem(name, language)]
    return next((t for t in terms if any(t in bag_of(x, language)[0] for x in texts)), terms[0])


def word_shares(texts, query, language="english", *, most_counted=255, longest=65_534):
    """Say how much of a query each document answers, BM25 out of the most there can be.

    `texts` maps a name to a text.
    """
    counted = {name: bag_of(text, language) for name, text in texts.items()}
    bags = {name: bag for name, (bag, _) in counted.items()}
    lengths = {name: min(length, longest) for name, (_, length) in counted.items()}
    terms, origin = terms_of(query, language)
    mean = max(1, sum(lengths.values())) / max(1, len(texts))
    df = {term: sum(term in bag for bag in bags.values()) for term in terms}
    idf = {t: max(float(np.log((len(texts) - n + 0.5) / (n + 0.5))), 1e-6) for t, n in df.items()}
    there = sorted(term for term in terms if df[term])
    chosen = sorted(there, key=lambda term: -terms[term] * idf[term])[:32]
    weights = {term: 2.2 * (terms[term] * idf[term]) for term in chosen}

    def score(bag, length, mean):
        base = 1.2 * (1 - 0.75) + 1.2 * 0.75 / mean * min(length, longest)
        counts = {term: min(bag[term], most_counted) for term in chosen}
        total = sum(weights[term] * (n / (n + base)) for term, n in counts.items())
        return total / max(sum(weights.values()), 1e-6)

    shares = {}
    for name, text in texts.items():
        shares[name] = score(bags[name], lengths[name], mean)
        spans = split_text(text) if len(text) > 600 else []
        if len(spans) > 1:
            inside = [bag_of(text[i:j], language, of_passage=True) for i, j in spans]
            shares[name] = (shares[name] + 0.5 * max(score(*one, 110) for one in inside)) / 1.5
    return shares, [origin[term] for term in sorted(terms) if term[0] != "=" and not df[term]]


def has(text, phrase):
    tokens, phrase = (
        [plain(token) for token in tokenize(text, shortest=1)],
        list(map(plain, phrase)),
    )
    return any(tokens[i : i + len(phrase)] == phrase for i in range(len(tokens)))


def fits(query, text, language="english"):
    """Phrases are there as they stand; a word to leave out is not, in any form."""
    tokens, pieces, _ = parts_of(text)
    stems = {stem(word, language) for word in [*tokens, *(piece for _, piece in pieces)]}
    for some in query.without:
        if len(some) > 1 and has(text, some):
            return False
        if (
            len(some) == 1
            and not is_stop_word(some[0], language)
            and stem(some[0], language) in stems
        ):
            return False
    return all(has(text, phrase) for phrase in query.phrases)


def slow_scores(documents, query, chances, passes=lambda name: True, language="english"):
    """Say of all documents that may be found how far they are only related, and their scores.

    `documents` maps an id to a text and a code, `query` is a `WordQuery`, `chances` the model's,
    or None where it knows no word of the query.
    """
    texts = {name: text for name, (text, _) in documents.items()}
    shares, _ = word_shares(texts, query, language)
    allowed = {n for n in documents if passes(n) and fits(query, texts[n], language)}
    if query.phrases:
        allowed = {name for name in allowed if shares[name]}
        quoted = {word for phrase in query.phrases for word in phrase}
        if not allowed and any(not is_stop_word(w, language) for w in query.words.keys() - quoted):
            unquoted = query._replace(phrases=())  # its words answer, as related
            found = slow_scores(documents, unquoted, chances, passes, language)
            return {name: (1, score) for name, (related, score) in found.items() if not related}
    bits = {name: unpack(np.array([documents[name][1]], np.uint8))[0] for name in allowed}
    term = name_term(texts.values(), query, language)
    named = {n for n in allowed if term is None or term in bag_of(texts[n], language)[0]}
    voting = [n for n in named or allowed if shares[n]]
    voters = sorted(voting, key=lambda n: (-shares[n], n))[:10]
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
    # 0: has what was asked for; 1: has parts of the name that was asked for; 2: has no word of it.
    return {
        name: (2 * (not shares[name]) or int(name not in named), score)
        for name, score in scores.items()
    }


def assert_best(hits, expected, k):
    """Hits are the k best of all, those that are only related last, in order, ties by id."""
    best = sorted((related, -score) for related, score in expected.values())[:k]
    assert [-hit.score for hit in hits] == pytest.approx([score for _, score in best], abs=1e-8)
    for hit in hits:
        related, score = expected[hit.id]
        assert (hit.related, hit.score) == (related > 0, pytest.approx(score, abs=1e-8))
    assert [*hits] == sorted(hits, key=lambda hit: (expected[hit.id][0], -hit.score, hit.id))


def chances_of(model, text):
    """Give the model's chances for a text, or None where it knows no word of it."""
    counts = model.counts([text])
    return model.codes_and_chances(counts)[1][0] if counts.indptr[-1] else None
