"""Measuring codes against labels, and search against queries whose relevant documents are known.

Exact metrics, one protocol for each, and whether a difference is real.
"""

from vdsh.evaluation.protocol import Evaluation, evaluate_codes, yardsticks
from vdsh.evaluation.quality import Quality, find_faults, measure_codes, measure_quality
from vdsh.evaluation.queries import Query, read_queries
from vdsh.evaluation.rankings import QueryEvaluation, Ranking, evaluate_queries
from vdsh.evaluation.significance import Comparison, compare

__all__ = [
    "Comparison",
    "Evaluation",
    "Quality",
    "Query",
    "QueryEvaluation",
    "Ranking",
    "compare",
    "evaluate_codes",
    "evaluate_queries",
    "find_faults",
    "measure_codes",
    "measure_quality",
    "read_queries",
    "yardsticks",
]
