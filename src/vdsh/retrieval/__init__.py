"""Ranking without storage: from a query to the rows of documents, best first.

`Query` says what to look for, `Candidates` are the documents that may be found, `rank` puts them
in order, and `Searcher` goes from one to the other over one word index and one Hamming index.
"""

from vdsh.retrieval.query import Query
from vdsh.retrieval.ranking import Candidates, Ranking, rank, vote
from vdsh.retrieval.searcher import Searcher

__all__ = ["Candidates", "Query", "Ranking", "Searcher", "rank", "vote"]
