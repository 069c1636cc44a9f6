"""Orders other than that of the distance: by the posterior, and by words and codes together."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdsh.codes import Codes, Scores, expected_distances, pack, unpack
from vdsh.documents import Document
from vdsh.errors import InputError
from vdsh.search import HammingIndex
from vdsh.store.hits import Candidate, Found, ParsedQuery, choose_from
from vdsh.store.rows import searched_text
from vdsh.text.languages import Language
from vdsh.words import IndexReader, Matches, Segment, WordIndex, WordQuery
from vdsh.words.index import Asked
from vdsh.words.phrases import fits
from vdsh.words.query import plain_query

RANKS = ("relevance", "distance", "expected")
CANDIDATES = 1000  # at least so many of the nearest are put in order by the posterior
# The rule of `docs/relevance.md`, chosen there.
WEIGHT = 0.6  # of the best code, beside the best match of words
WITH_VECTOR = [0.4, 1.0]  # of the best topic and of the best vector, where the query has one
VOTERS, SHARPNESS = 10, 6
FAR = 0.5  # of the best score: what a vector found without any word is only related below
LEAST_CANDIDATES = 100  # by words, and as many by code
MOST_TIES = 1000  # documents that match as well as the last of the best
MOST_CORRECTED = 5  # words of a query


def choose_rank(rank: Any, *, is_text: bool, is_vector: bool = False) -> str:
    """Return how hits are ranked, or say why they cannot be; None is the best for the query.

    What is neither a text nor a vector is a code.
    """
    if rank is None:
        return "relevance" if is_text else "expected" if is_vector else "distance"
    if rank not in RANKS:
        raise InputError(f'rank must be "relevance", "distance" or "expected". Got {rank!r}.')
    if rank == "expected" and not is_text and not is_vector:
        raise InputError(
            'rank="expected" needs a text: a code does not say how sure its bits are. '
            'Give the text, or use rank="distance".'
        )
    if rank == "relevance" and not is_text:
        raise InputError(
            f'rank="relevance" needs a text: a {"vector" if is_vector else "code"} has no words. '
            'Give the text, or use rank="distance".'
        )
    return str(rank)


class ByExpectedDistance:
    """Chooses the k candidates with the least expected distance, ties by distance and id.

    Parameters
    ----------
    probabilities : ndarray of shape (n_bits,)
        Of each bit of the query being 1.

    Attributes
    ----------
    n_candidates : int
        How many of the nearest it wants to see.
    expected : dict of str to float
        The expected distance of each candidate, by id.
    """

    def __init__(self, probabilities: Scores, k: int) -> None:
        self._probabilities = probabilities
        self._k = k
        self.n_candidates = max(4 * k, CANDIDATES)
        self.expected: dict[str, float] = {}

    def __call__(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return the first k."""
        if not candidates:
            return []
        means = expected_distances(_codes(candidates), self._probabilities).tolist()
        self.expected = {c.id: mean for c, mean in zip(candidates, means, strict=True)}
        return sorted(candidates, key=lambda c: (self.expected[c.id], c.distance, c.id))[: self._k]

    def choose(
        self, codes: Codes, distances: NDArray[Any], keys: NDArray[Any]
    ) -> tuple[NDArray[np.int64], list[float]]:
        """Tell where the first k of some codes are, whose ids sort as `keys`, and their means."""
        means = expected_distances(codes, self._probabilities)
        first = np.lexsort((keys, distances, means))[: self._k]
        return first, means[first].tolist()


class Scored(NamedTuple):
    """What a candidate is worth, from 0 to 1, and whether it is only related to the query.

    That is what has none of its words, or only parts of the name that the query is. Where the
    query has a vector, which finds other words, it also needs a score far below the best.
    """

    score: float
    related: bool


class Pool(NamedTuple):
    """Candidates as arrays."""

    keys: NDArray[Any]  # (n,): numbers that sort as their ids do
    codes: Codes
    shares: NDArray[np.float64]
    named: NDArray[np.bool_]  # whether they have the name that the query is; all where it is none

    @classmethod
    def of(cls, candidates: Sequence[Candidate]) -> "Pool":
        """Take apart candidates that were fetched one by one."""
        shares = np.array([candidate.share for candidate in candidates], float)
        named = np.array([candidate.named for candidate in candidates], bool)
        return cls(sort_keys([one.id for one in candidates]), _codes(candidates), shares, named)


Choice = tuple[int, int, Scored]  # where a candidate is, and its distance from the query's code


class ByRelevance:
    """Chooses the k candidates with the highest score of words and codes, ties by id.

    The best by words vote on the code that is wanted. A document gains by what it answers of the
    words, and by how far its code is expected to agree with that code, beyond chance; where codes
    have a part of vectors, by the cosine of the query's vector and those bits too.
    What is only related comes last.

    Parameters
    ----------
    query : ParsedQuery
        Of a text. Where the model knows none of its words, nothing is found unless documents have
        them.
    strict : bool, default=False
        Leave out what is only related.

    Attributes
    ----------
    words : WordQuery
        The words of the query.
    n_candidates : int
        How many of the best by words it wants to see, and of the nearest by code.
    scores : dict of str to Scored
        Of those that were chosen, by id.
    missing : list of str
        Words of the query that no document has; whoever looks notes them.
    df : mapping of str to int
        How many documents have each term of the query; whoever looks notes it, too.
    meant : dict of str to str
        Such words, with those that are looked for instead.
    """

    def __init__(self, query: ParsedQuery, k: int, *, strict: bool = False) -> None:
        self.query = query
        self.strict = strict
        self.words = query.words or plain_query("")
        self.n_candidates = max(2 * k, LEAST_CANDIDATES)
        if self.words.phrases:  # texts are read to find them
            self.n_candidates = 2 * k
        self.scores: dict[str, Scored] = {}
        self.missing: list[str] = []
        self.df: Mapping[str, int] = {}
        self.meant: dict[str, str] = {}
        self._knows = query.chances is not None and not query.empty
        chances = query.chances if self._knows else np.full(8 * len(query.code), 0.5)
        self._given = np.asarray(chances, float)
        self._chances = self._given
        self._topic = slice(len(self._chances) - query.vector_bits)
        self._k = k

    def correct(self, missing: Sequence[str], find_meant: Callable[..., list[str]]) -> bool:
        """Look for what words that no document has were meant to be, where documents have that."""
        for word in missing[:MOST_CORRECTED]:
            if others := find_meant(word, unfinished=word == self.words.unfinished):
                self.meant[word] = others[0]
        if self.meant:
            self.words = self.words.corrected(self.meant)
        return bool(self.meant)

    def wanted(self, best: Pool) -> Codes:
        """Have the best by words vote, and return the code that is wanted."""
        if not len(self._chances):  # no codes yet
            self._knows = True
            return self.query.code
        shares = best.shares * best.named if best.named.any() else best.shares
        voters = _first(best.keys, VOTERS, -shares)
        if len(voters) and shares[voters[0]] > 0:
            trust = float(shares[voters[0]])
            votes = (shares[voters] / trust) ** SHARPNESS
            agreed = votes @ unpack(best.codes[voters]) / votes.sum()
            voted = (1 - trust) * self._given + trust * agreed
            if self.query.turned is not None:  # a vector says itself what it looks for
                voted[self._topic.stop :] = self._given[self._topic.stop :]
            self._chances = voted
            self._knows = True
        wanted: Codes = pack((self._chances > 0.5)[None])[0]
        return wanted

    def choose_in_memory(
        self, words: IndexReader, asked: Asked, index: HammingIndex
    ) -> tuple[NDArray[np.int64], list[Choice], Matches] | None:
        """Choose among the best by words and the nearest to the code they want: their numbers.

        A query with signs or a vector, without a code, or which is only a name, is left to
        `wanted` and `choose`.
        """
        view = index.view()
        signs = bool(self.words.phrases or self.words.without)
        signs = signs or bool(self.words.only_name(words.language))
        if view is None or signs or self.query.turned is not None or not len(index):
            return None
        from vdsh.store.ranking_kernels import choose, vote

        n, k = self.n_candidates, self._k
        best, shares_of = words.best(asked, n, MOST_TIES)
        rows = index.rows_of(best.numbers)
        chances = vote(view.facts, rows, best.shares, self._given, VOTERS, SHARPNESS)
        if not self._knows and not len(rows):
            return rows, [], best
        near, told = index.nearest(pack(chances > 0.5), n)
        both = np.concatenate((rows, near)), np.concatenate((best.numbers, told))
        shares = np.concatenate((best.shares, shares_of(told)))
        topic, code = chances[self._topic], self.query.code
        numbers, distances, *scored = choose(
            view.facts, *both, shares, topic, code, len(rows), WEIGHT, k
        )
        scores = map(Scored, *(values.tolist() for values in scored))
        chosen = list(zip(range(len(numbers)), distances.tolist(), scores, strict=True))
        if self.strict:
            chosen = [one for one in chosen if not one[-1].related]
        return numbers, chosen, best

    def __call__(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return the first k, with their distances from the query's own code."""
        chosen = [(candidates[i], bits, one) for i, bits, one in self.choose(Pool.of(candidates))]
        self.scores = {candidate.id: scored for candidate, _, scored in chosen}
        return [candidate._replace(distance=distance) for candidate, distance, _ in chosen]

    def choose(self, pool: Pool) -> list[Choice]:
        """Choose the first k: where they are, distances from the query's own code, scores."""
        if not len(pool.keys) or not self._knows:
            return []
        codes, shares = pool.codes, pool.shares
        scores = np.round(self._join(shares, codes), 9)
        wordless = shares == 0
        if self.query.turned is not None:  # a vector finds what has other words
            wordless &= scores < FAR * scores.max()
        related = wordless | ~pool.named
        # Scores are 1 at most: what has parts of a name comes before what has none of the words.
        order = _first(pool.keys, self._k, 2.0 * related + 2.0 * wordless - scores)
        left_out = related if self.strict else shares < 0
        if not len(self._chances):  # the store has not learned codes
            left_out = left_out | (shares == 0)
        order = order[~left_out[order]]
        n_bytes = self._topic.stop // 8 if self.query.turned is None else codes.shape[1]
        differing = np.bitwise_count(codes[order] ^ self.query.code)[:, :n_bytes]
        found = map(Scored, scores[order].tolist(), related[order].tolist())
        distances = differing.sum(axis=1, dtype=int).tolist()
        return list(zip(order.tolist(), distances, found, strict=True))

    def _join(self, shares: NDArray[Any], codes: Codes) -> NDArray[Any]:
        """Score candidates: the square root makes a whole match with the wanted code a 1."""
        if not len(self._chances):  # the store has not learned codes
            return shares
        parts, weights = [self._agreements(codes)], [WEIGHT]
        if self.query.turned is not None:
            parts, weights = [*parts, self._cosines(codes)], WITH_VECTOR
        # Where no document has a word, the codes alone say how good the best is.
        best = shares.max() or max(part.max() for part in parts)
        scaled = (w * part / max(part.max(), 1e-9) for w, part in zip(weights, parts, strict=True))
        joined: NDArray[Any] = np.sqrt((shares**2 + best**2 * sum(scaled)) / (1 + sum(weights)))
        return joined

    def _agreements(self, codes: Codes) -> NDArray[Any]:
        """Compare topics: thresholds cut bits in halves, so half of them agree by chance."""
        n_bits, chances = self._topic.stop, self._chances[self._topic]
        distances = expected_distances(codes[:, : n_bits // 8], chances)
        agreements: NDArray[Any] = np.maximum(0, 1 - 2 * distances / n_bits)
        return agreements

    def _cosines(self, codes: Codes) -> NDArray[Any]:
        """Compare the query's vector with bits, as -1 and 1."""
        turned = np.array(self.query.turned, float)
        turned /= max(float(np.linalg.norm(turned)), 1e-9) * len(turned) ** 0.5
        bits = unpack(codes[:, self._topic.stop // 8 :])
        cosines: NDArray[Any] = np.maximum(0, 2 * bits @ turned - turned.sum())
        return cosines


def reorder(
    found: Sequence[Found], ranking: ByRelevance, language: Language, *, correct: bool = False
) -> list[Found]:
    """Rank documents that were fetched, as if there were no others.

    `correct`: look among their words for what others were meant to be.
    """
    texts = [words_text(one.document) for one in found]
    index = WordIndex([Segment.of(texts, language)], language)
    asked = index.look_up(ranking.words)
    if correct and ranking.correct(asked.missing, index.meant):
        asked = index.look_up(ranking.words)
    ranking.missing, ranking.df = asked.missing, asked.df
    matches = index.score(asked)
    numbers = np.arange(len(found))
    shares, spans = matches.of(numbers).tolist(), map(tuple, matches.spans_of(numbers).tolist())
    with_name = index.with_name(ranking.words)
    named = [True] * len(found) if with_name is None else np.isin(numbers, with_name).tolist()
    by_id = {
        one.document.id: {"share": share, "span": span, "named": is_named}
        for one, share, span, is_named in zip(found, shares, spans, named, strict=True)
    }
    fitting = [
        one
        for one, text, share in zip(found, texts, shares, strict=True)
        if fits(ranking.words, text, language) and (share or not ranking.words.phrases)
    ]

    def choose(near: list[Candidate]) -> list[Candidate]:
        candidates = [candidate._replace(**by_id[candidate.id]) for candidate in near]
        ranking.wanted(Pool.of(candidates))
        return ranking(candidates)

    return choose_from(fitting, choose)


def words_text(document: Document) -> str:
    """Give what the words of a document are taken from."""
    return searched_text(document.id, document.text, document.metadata)


def keep_fitting(
    found: Sequence[Found], words: WordQuery, limit: int | None, language: Language
) -> tuple[list[Found], int]:
    """Return the first documents that fit a query, of those that were fetched, and count all."""
    fitting = [one for one in found if fits(words, words_text(one.document), language)]
    return fitting[:limit], len(fitting)


def sort_keys(ids: Sequence[str]) -> NDArray[np.int64]:
    """Give numbers that sort as ids do."""
    keys = np.empty(len(ids), np.int64)
    keys[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
    return keys


def _first(ids: NDArray[Any], n: int, keys: NDArray[Any]) -> NDArray[np.int64]:
    """Tell where the n candidates with the lowest keys are, ties by id."""
    return np.lexsort((ids, keys))[:n]


def _codes(candidates: Sequence[Candidate]) -> Codes:
    packed = b"".join([candidate.code for candidate in candidates])
    return np.frombuffer(packed, np.uint8).reshape(len(candidates), -1 if candidates else 0)
