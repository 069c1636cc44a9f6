"""What every benchmark records: machine, versions, commit; and how contenders are timed."""

import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vdsh.paper import provenance

RESULTS = Path(__file__).parent / "results"


def save(name: str, result: dict[str, Any]) -> None:
    """Write a result with its circumstances to `results/`, or to the folder $VDSH_RESULTS."""
    write(name, {"circumstances": provenance(), **result})


def write(name: str, result: dict[str, Any]) -> None:
    """Write a result as it is."""
    folder = Path(os.environ.get("VDSH_RESULTS", RESULTS))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    print(f"-> {folder.name}/{name}.json")


def read(name: str) -> dict[str, Any]:
    """Read a committed result."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """Write a table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def resident_mb() -> float:
    """Say how much memory this process has, where the system tells."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return float("nan")
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def alternate(contenders: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Time contenders in turn, several rounds, after one untimed round; return median seconds."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name, work in contenders.items():
            start = time.perf_counter()
            work()
            if number:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}
