"""How good codes are at finding documents that share a label.

Expected precision at k, ties broken at random, is computed in two places, because two callers
ask different questions; tests hold them equal.

`ranking` is the definition and what is reported: packed codes of any number of documents, counted
    by a kernel into a `Tally`, from which all measures follow.
`by_threshold` asks thousands of times while thresholds are chosen, for codes that differ in one
    bit: it keeps all distances and measures every candidate of a bit in one pass over them.
"""
