"""Measuring codes against labels: exact metrics, one protocol, and whether a difference is real."""

from vdsh.evaluation.protocol import Evaluation, evaluate_codes, evaluate_hasher, yardsticks
from vdsh.evaluation.quality import Quality, find_faults, measure_codes, measure_quality
from vdsh.evaluation.significance import Comparison, compare
from vdsh.metrics.ranking import (
    Tally,
    average_precision,
    cosine_precision,
    expected_precision,
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
    "Tally",
    "average_precision",
    "compare",
    "cosine_precision",
    "evaluate_codes",
    "evaluate_hasher",
    "expected_precision",
    "find_faults",
    "measure_codes",
    "measure_quality",
    "ndcg_at",
    "precision_at",
    "precision_within",
    "random_precision",
    "recall_at",
    "recall_within",
    "tally",
    "yardsticks",
]
