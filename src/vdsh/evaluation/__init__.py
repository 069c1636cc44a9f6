"""Measuring codes against labels, and search against queries whose relevant documents are known.

Exact metrics, one protocol for each, and whether a difference is real.
"""

from vdsh.evaluation.protocol import Evaluation, evaluate_codes, yardsticks
from vdsh.evaluation.quality import Quality, find_faults, measure_codes, measure_quality
from vdsh.evaluation.queries import Query, read_queries
from vdsh.evaluation.rankings import QueryEvaluation, Ranking, evaluate_queries
from vdsh.evaluation.significance import Comparison, compare
from vdsh.metrics.ranking import (
    Tally,
    average_precision,
    cosine_precision,
    ndcg_at,
    precision_at,
    precision_within,
    random_precision,
    recall_at,
    recall_within,
    tally,
)

__all__ = [
    "Comparison",
    "Evaluation",
    "Quality",
    "Query",
    "QueryEvaluation",
    "Ranking",
    "Tally",
    "average_precision",
    "compare",
    "cosine_precision",
    "evaluate_codes",
    "evaluate_queries",
    "find_faults",
    "measure_codes",
    "measure_quality",
    "ndcg_at",
    "precision_at",
    "precision_within",
    "random_precision",
    "read_queries",
    "recall_at",
    "recall_within",
    "tally",
    "yardsticks",
]
