"""How good a model is on held-out texts, and a store on queries whose answers are known."""

from vdsh.evaluation.quality import Quality, find_faults, measure_codes, measure_quality
from vdsh.evaluation.queries import Query, read_queries
from vdsh.evaluation.rankings import QueryEvaluation, Ranking, evaluate_queries
from vdsh.evaluation.significance import Comparison, compare
from vdsh.evaluation.yardsticks import yardsticks

__all__ = [
    "Comparison",
    "Quality",
    "Query",
    "QueryEvaluation",
    "Ranking",
    "compare",
    "evaluate_queries",
    "find_faults",
    "measure_codes",
    "measure_quality",
    "read_queries",
    "yardsticks",
]
