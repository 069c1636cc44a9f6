"""How good codes are at finding documents that share a label.

Expected precision at k, ties broken at random, is computed in three places, because three callers
ask different questions; tests hold them equal.

`ranking` is the definition and what is reported: packed codes of any number of documents, counted
    by a kernel into a `Tally`, from which all measures follow.
`vdsh.hashers.vdsh.validation` asks after every epoch, where the network is: it counts the same
    `Tally` in torch, so that neither weights nor codes leave a GPU.
`by_threshold` asks thousands of times while thresholds are chosen, for codes that differ in one
    bit: it keeps all distances and measures every candidate of a bit in one pass over them.
"""
