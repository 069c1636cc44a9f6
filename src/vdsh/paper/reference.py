"""The published numbers of the paper, and how its corpora are called here.

S. Chaidaroon and Y. Fang, "Variational Deep Semantic Hashing for Text Documents", SIGIR 2017:
table 1 (precision at 100) and table 2 (median against sign, 32 bits). Figures 2 and 3 were
published as pictures only.
"""

BITS = (8, 16, 32, 64, 128)
DATASETS = {"rcv1": "RCV1", "reuters20": "Reuters", "20newsgroups": "20 Newsgroups", "tmc": "TMC"}
METHODS = {
    "lsh": "LSH",
    "sph": "SpH",
    "sth": "STH",
    "rbm": "Stacked RBMs",
    # Not in the paper: a good check of the others.
    "itq": "ITQ",
    "ksh": "KSH",
    "shttm": "SHTTM",
    "vdsh": "VDSH",
    "vdsh-s": "VDSH-S",
    "vdsh-sp": "VDSH-SP",
}
OURS = ("vdsh", "vdsh-s", "vdsh-sp")

TABLE1: dict[str, dict[str, tuple[float, ...]]] = {
    "rcv1": {
        "lsh": (0.4180, 0.4352, 0.4716, 0.5214, 0.5877),
        "sph": (0.5093, 0.7121, 0.7475, 0.7559, 0.7423),
        "sth": (0.3975, 0.4898, 0.5592, 0.5945, 0.5946),
        "rbm": (0.5106, 0.5743, 0.6130, 0.6463, 0.6531),
        "ksh": (0.9126, 0.9146, 0.9221, 0.9333, 0.9350),
        "shttm": (0.8820, 0.9038, 0.9258, 0.9459, 0.9447),
        "vdsh": (0.7976, 0.7944, 0.8481, 0.8951, 0.8444),
        "vdsh-s": (0.9652, 0.9749, 0.9801, 0.9804, 0.9800),
        "vdsh-sp": (0.9666, 0.9757, 0.9788, 0.9805, 0.9794),
    },
    "reuters20": {
        "lsh": (0.2802, 0.3215, 0.3862, 0.4667, 0.5194),
        "sph": (0.6080, 0.6340, 0.6513, 0.6290, 0.6045),
        "sth": (0.6616, 0.7351, 0.7554, 0.7350, 0.6986),
        "rbm": (0.5113, 0.5740, 0.6154, 0.6177, 0.6452),
        "ksh": (0.7840, 0.8376, 0.8480, 0.8537, 0.8620),
        "shttm": (0.7992, 0.8520, 0.8323, 0.8271, 0.8150),
        "vdsh": (0.6859, 0.7165, 0.7753, 0.7456, 0.7318),
        "vdsh-s": (0.9005, 0.9121, 0.9337, 0.9407, 0.9299),
        "vdsh-sp": (0.8890, 0.9326, 0.9283, 0.9286, 0.9395),
    },
    "20newsgroups": {
        "lsh": (0.0578, 0.0597, 0.0666, 0.0770, 0.0949),
        "sph": (0.2545, 0.3200, 0.3709, 0.3196, 0.2716),
        "sth": (0.3664, 0.5237, 0.5860, 0.5806, 0.5443),
        "rbm": (0.0594, 0.0604, 0.0533, 0.0623, 0.0642),
        "ksh": (0.4257, 0.5559, 0.6103, 0.6488, 0.6638),
        "shttm": (0.2690, 0.3235, 0.2357, 0.1411, 0.1299),
        "vdsh": (0.3643, 0.3904, 0.4327, 0.1731, 0.0522),
        "vdsh-s": (0.6586, 0.6791, 0.7564, 0.6850, 0.6916),
        "vdsh-sp": (0.6609, 0.6551, 0.7125, 0.7045, 0.7117),
    },
    "tmc": {
        "lsh": (0.4388, 0.4393, 0.4514, 0.4553, 0.4773),
        "sph": (0.5807, 0.6055, 0.6281, 0.6143, 0.5891),
        "sth": (0.3723, 0.3947, 0.4105, 0.4181, 0.4123),
        "rbm": (0.4846, 0.5108, 0.5166, 0.5190, 0.5137),
        "ksh": (0.6608, 0.6842, 0.7047, 0.7175, 0.7243),
        "shttm": (0.6299, 0.6571, 0.6485, 0.6893, 0.6474),
        "vdsh": (0.4330, 0.6853, 0.7108, 0.4410, 0.5847),
        "vdsh-s": (0.7387, 0.7887, 0.7883, 0.7967, 0.8018),
        "vdsh-sp": (0.7498, 0.7798, 0.7891, 0.7888, 0.7970),
    },
}
# (median, sign). The medians of 20 Newsgroups differ a little from table 1 in the paper too
TABLE2: dict[str, dict[str, tuple[float, float]]] = {
    "rcv1": {"vdsh": (0.8481, 0.8514), "vdsh-s": (0.9801, 0.9804), "vdsh-sp": (0.9788, 0.9794)},
    "reuters20": {
        "vdsh": (0.7753, 0.7851),
        "vdsh-s": (0.9337, 0.9284),
        "vdsh-sp": (0.9283, 0.9346),
    },
    "20newsgroups": {
        "vdsh": (0.4354, 0.4267),
        "vdsh-s": (0.7564, 0.7563),
        "vdsh-sp": (0.6913, 0.6574),
    },
    "tmc": {"vdsh": (0.7108, 0.7162), "vdsh-s": (0.7883, 0.7879), "vdsh-sp": (0.7891, 0.7761)},
}

# Later methods, unsupervised, as published (with their authors' preprocessing), from 16 bits on:
# AMMI: K. Stratos and S. Wiseman, "Learning Discrete Structured Representations by Adversarially
# Maximizing Mutual Information", ICML 2020. SNUH: Z. Ou et al., "Integrating Semantics and
# Neighborhood Information with Graph-Driven Generative Models for Document Retrieval", ACL 2021;
# of its two sets of numbers that are in circulation, one of which may be an ablation's, the higher.
LATER: dict[str, dict[str, tuple[float | None, ...]]] = {
    "AMMI": {
        "reuters20": (None, 0.817, 0.845, 0.851, 0.860),
        "tmc": (None, 0.710, 0.742, 0.752, 0.763),
        "20newsgroups": (None, 0.552, 0.596, 0.640, 0.662),
    },
    "SNUH": {
        "reuters20": (None, 0.832, 0.847, 0.856, 0.862),
        "tmc": (None, 0.725, 0.754, 0.766, 0.773),
        "20newsgroups": (None, 0.578, 0.639, 0.665, 0.676),
    },
}


def published(dataset: str, model: str, n_bits: int) -> float | None:
    """Return the paper's precision at 100, or None where it has no number.

    >>> published("20newsgroups", "vdsh-s", 32)
    0.7564
    """
    row = TABLE1.get(dataset, {}).get(model)
    if row is None or n_bits not in BITS:
        return None
    return row[BITS.index(n_bits)]
