"""The page's size and calls, and how smoothly a map of 20,000 documents pans and zooms in chromium.

Run: python benchmarks/bench_page.py [--documents 20000] [--store STORE]

`calls` counts what is asked of the API by one search and by typing its text slowly; `slow_line`
says when hits and map are there at 50 kB/s, both ways, 200 ms away.

Headless chromium draws without a graphics card here, so a laptop is faster. Each animation frame's
callback is timed in the page (`script`), and the time between frames is what a person sees (16.7 ms
at 60 Hz).
"""

import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import numpy as np
from common import run, serving

from vdsh import Document, TextHasher, corpus_map, open_store

N_LABELS = 20
STEPS = 180
TEXT = "word1 word2 and word3"
PAUSE = 0.4  # seconds between keys of a slow hand
SLOW = {"offline": False, "latency": 200, "downloadThroughput": 50e3, "uploadThroughput": 50e3}
PAGE = Path(corpus_map.__file__).parent / "server" / "page"
# Counts what the page's own animation frames cost, without the page knowing.
WATCH = """
const plain = requestAnimationFrame.bind(window);
window.frames_ = []; window.script_ = [];
window.requestAnimationFrame = (work) => plain((time) => {
  const began = performance.now(); work(time); window.script_.push(performance.now() - began);
});
const beat = (time) => { window.frames_.push(time); plain(beat); };
plain(beat);
"""


def measure(given):
    sizes = {file.name: file.stat().st_size for file in sorted(PAGE.iterdir())}
    with tempfile.TemporaryDirectory() as folder:
        store = given.store or make_store(Path(folder) / "store", given.documents)
        with serving(store) as (_, address):
            found = browse(address.geturl())
    return {"total_bytes": sum(sizes.values()), "wanted_bytes": 100_000, **found}


def make_store(path: Path, n: int) -> Path:
    """Make a store of short documents, and a map of as many round groups as labels."""
    rng = np.random.RandomState(0)
    words = np.array([f"word{i}" for i in range(200)])
    label = np.arange(n) % N_LABELS
    texts = [" ".join(words[rng.randint(200, size=6)]) for _ in label]
    hasher = TextHasher("lsh", n_bits=32, random_state=0).fit(texts[:2000])
    names, labels = [f"d{i}" for i in range(n)], [f"label {i}" for i in range(N_LABELS)]
    with open_store(path, hasher) as store:
        rows = zip(names, texts, label, strict=True)
        store.upsert(Document(name, text, (labels[i],)) for name, text, i in rows)
    centres = rng.uniform(-0.8, 0.8, (N_LABELS, 2))
    points = (centres[label] + rng.normal(0, 0.06, (n, 2))).clip(-1, 1).astype(np.float32)
    scores = np.zeros((n, 32), np.float32)
    facts = {"documents": n, "seed": 0, "fingerprint": hasher.model_.fingerprint}
    made = corpus_map.CorpusMap(names, texts, points, scores, label.astype(np.int32), labels, facts)
    corpus_map.save(path / corpus_map.FILE, made)
    return path


def browse(address: str) -> dict[str, Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.add_init_script(WATCH)
        page.goto(f"{address}/?view=map")
        page.locator("#map-note", has_text="documents").wait_for()
        page.wait_for_timeout(1000)
        seen = page.locator("#map-note").inner_text()
        moves = {"pan": record(page, pan), "zoom": record(page, zoom)}
        page.get_by_label("Zoom in").click(click_count=3, delay=50)
        page.wait_for_timeout(500)
        moves["pan, zoomed in"] = record(page, pan)
        asked = count_calls(browser, address)
        slow = on_a_slow_line(browser, address)
        version = browser.version
        browser.close()
    facts = {"browser": f"chromium {version}, headless", "map": seen, "moves": moves}
    return facts | {"calls": asked, "slow_line": slow, "map_bytes": map_bytes(address)}


def count_calls(browser: Any, address: str) -> dict[str, int]:
    found = {}
    for name, delay in (("a search", 0.0), ("typing slowly", PAUSE)):
        page = browser.new_page()
        page.goto(address)
        page.locator("#map-note", has_text="documents").wait_for()
        asked: list[str] = []
        page.on("request", lambda request, asked=asked: asked.append(request.url))
        page.locator("#q").press_sequentially(TEXT, delay=1000 * delay)
        page.locator("#q").press("Enter")
        page.locator(".hit mark").first.wait_for()
        page.wait_for_load_state("networkidle")
        found[name] = sum("/v1/" in url for url in asked)
        page.close()
    return found


def on_a_slow_line(browser: Any, address: str) -> dict[str, float]:
    page = browser.new_page()
    page.set_default_timeout(120_000)
    page.context.new_cdp_session(page).send("Network.emulateNetworkConditions", SLOW)
    began = time.perf_counter()
    page.goto(f"{address}/?q={TEXT.replace(' ', '+')}", wait_until="commit")
    page.locator(".hit mark").first.wait_for()
    hits = time.perf_counter() - began
    page.locator("#map-note", has_text="documents").wait_for()
    whole = time.perf_counter() - began
    page.close()
    return {"seconds_to_hits": round(hits, 1), "seconds_to_map": round(whole, 1)}


def map_bytes(address: str) -> dict[str, int]:
    sizes = {}
    for name in ("identity", "gzip"):
        request = Request(f"{address}/v1/map", headers={"Accept-Encoding": name})
        with urlopen(request) as answer:
            sizes[name] = len(answer.read())
    return sizes


def pan(page: Any) -> None:
    page.mouse.move(720, 450)
    page.mouse.down()
    for i in range(STEPS):
        angle = i / 30
        page.mouse.move(720 + 400 * np.sin(angle), 450 + 250 * np.sin(1.3 * angle))
    page.mouse.up()


def zoom(page: Any) -> None:
    for i in range(STEPS // 2):
        page.mouse.wheel(0, -40 if i < STEPS // 4 else 40)


def record(page: Any, move: Any) -> dict[str, float]:
    page.evaluate("window.frames_.length = window.script_.length = 0")
    move(page)
    frames, script = page.evaluate("[window.frames_, window.script_]")
    between = np.diff(frames)
    return {
        "frames": len(frames),
        "median_ms_between": round(float(np.median(between)), 1),
        "p95_ms_between": round(float(np.percentile(between, 95)), 1),
        "median_ms_script": round(statistics.median(script), 2) if script else 0.0,
        "max_ms_script": round(max(script), 1) if script else 0.0,
    }


if __name__ == "__main__":
    run(measure, documents=20_000, store=str)
