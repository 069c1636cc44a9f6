"""The tables of docs/vectors.md, from `results/vectors.json`."""

from statistics import fmean

from common import markdown, read

BITS = (8, 16, 32, 64, 128)
NAMES = {
    "20newsgroups": "20 Newsgroups",
    "reuters20": "Reuters",
    "tmc": "TMC",
    "rcv1": "RCV1, one seed",
    "snippets": "web snippets, 11 words each",
}


def hops_table() -> str:
    """Precision at 100 of the defaults, before and now."""
    result = read("vectors")
    rows = []
    for corpus, name in NAMES.items():
        before = result["before"][corpus]
        rows.append([f"{name}, before", *(_shown(before.get(str(bits))) for bits in BITS)])
        now = [_mean(result, corpus, "words", bits) for bits in BITS]
        rows.append([f"**{name}, now**", *map(_shown, now)])
    rows.append(["SNUH on snippets", *(_shown(result["snuh"]["snippets"].get(str(b)))
                                       for b in BITS)])  # fmt: skip
    return markdown(["test", *(f"{bits} bits" for bits in BITS)], rows)


TAUGHT = {
    "titles": ("titles of Reuters", "lsa", "taught by whole stories"),
    "20newsgroups": ("20 Newsgroups", "minilm", "taught by MiniLM"),
    "snippets": ("web snippets", "minilm", "taught by MiniLM"),
}


def teacher_table() -> str:
    """Precision at 100 without and with a teacher."""
    result = read("vectors")
    rows = []
    for corpus, (name, teacher, how) in TAUGHT.items():
        for kind, shown in (("words", f"{name}, words"), (teacher, f"**{name}, {how}**")):
            found = [_mean(result, corpus, kind, bits) for bits in (32, 128)]
            rows.append([shown, *map(_shown, found)])
    return markdown(["test", "32 bits", "128 bits"], rows)


def _mean(result: dict, corpus: str, teacher: str, bits: int) -> float | None:
    wanted = (corpus, teacher, bits)
    rows = result["rows"]
    found = [r["test"] for r in rows if (r["corpus"], r["teacher"], r["bits"]) == wanted]
    return fmean(found) if found else None


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
