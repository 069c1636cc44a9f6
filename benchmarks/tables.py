"""Write the tables of the README and the docs from `results/*.json`.

python benchmarks/tables.py
"""

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    for page, content in pages().items():
        page.write_text(content)


def pages() -> dict[Path, str]:
    """Return the pages with tables as they should read."""
    readme, models = ROOT / "README.md", ROOT / "docs" / "models.md"
    return {
        readme: _fill(readme.read_text(), f"{quality_table()}\n\n{speed_table()}"),
        models: _fill(models.read_text(), quality_table()),
    }


def quality_table() -> str:
    result = _read("quality_gpu")
    shown = {"20newsgroups": "20 Newsgroups", "reuters20": "Reuters (20 categories)"}
    lines = [
        "Expected precision at 100 on test documents, the paper's settings, random 80/10/10 split:",
        "",
        "| corpus | bits | VDSH | VDSH-S | VDSH-SP | exact tf-idf cosine | random |",
        "|---|---|---|---|---|---|---|",
    ]
    keys = dict.fromkeys((row["dataset"], row["bits"]) for row in result["rows"])
    for dataset, bits in keys:
        found = {
            row["model"]: f"{row['test_precision']:.3f}"
            for row in result["rows"]
            if (row["dataset"], row["bits"]) == (dataset, bits)
        }
        cells = [found.get(model, "") for model in ("vdsh", "vdsh-s", "vdsh-sp")]
        marks = result["yardsticks"][dataset]
        cells += [f"{marks['tfidf_cosine']:.3f}", f"{marks['random']:.3f}"]
        lines.append(f"| {shown[dataset]} | {bits} | {' | '.join(cells)} |")
    return "\n".join(lines)


def speed_table() -> str:
    text, cpu, gpu = _read("text"), _read("training_cpu"), _read("training_gpu")
    start = _read("startup")
    rates = text["documents_per_second"]
    epoch = cpu["epoch_seconds"]["sparse"]
    warm = sorted(gpu["seconds"][1:])[len(gpu["seconds"][1:]) // 2]
    rows = [
        ("texts to 32-bit codes, 2 cores", f"{rates['texts to codes']:,} documents/s"),
        ("scikit-learn's tf-idf alone, same run", f"{rates['sklearn tf-idf alone']:,} documents/s"),
        ("one text at a time", f"{rates['texts to codes, one at a time']:,} documents/s"),
        ("training epoch, 2 cores", f"{epoch:.1f} s ({cpu['ratio']}x faster than dense input)"),
        ("30 epochs on an H200, validation included", f"{warm:.1f} s"),
        ("`import vdsh`", f"{start['seconds']['import vdsh']:.2f} s"),
    ]
    lines = ["| 20 Newsgroups, 10,000 words | |", "|---|---|"]
    return "\n".join(lines + [f"| {name} | {value} |" for name, value in rows])


def _fill(page: str, table: str) -> str:
    pattern = r"(<!-- results: [^\n]*-->\n).*?(<!-- end of results -->)"
    return re.sub(pattern, lambda match: f"{match[1]}{table}\n{match[2]}", page, flags=re.DOTALL)


def _read(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / f"{name}.json").read_text())


if __name__ == "__main__":
    main()
