"""Take the codes elsewhere: a faiss index and its ids, and the same answers from both.

Needs `pip install 'vdsh[export]'`.
"""

import json
import tempfile
from pathlib import Path

import faiss

from vdsh import TextHasher, open_store
from vdsh.documents import docstrings
from vdsh.export import export_codes

AREAS = ("asyncio", "email", "numpy.ma", "scipy.signal", "sklearn.metrics", "turtle")
QUERY = "filter a signal with a window"

documents = docstrings.collect(modules=AREAS, each=110)
hasher = TextHasher("itq", n_bits=64, random_state=0)
hasher.fit([document.text for document in documents], progress=False)

with tempfile.TemporaryDirectory() as folder, open_store(f"{folder}/store", hasher) as store:
    store.upsert(documents)
    done = export_codes(store, "faiss", f"{folder}/codes.faiss")
    print(f"Wrote {done.documents} codes to {Path(done.path).name}.")

    # From here on faiss alone, as another program would use it.
    index = faiss.read_index_binary(str(done.path))
    ids = [json.loads(line) for line in Path(done.ids).read_text().splitlines()]
    distances, rows = index.search(hasher.encode([QUERY]), 5)
    print(f"\nfaiss, nearest to {QUERY!r}:")
    for distance, row in zip(distances[0], rows[0], strict=True):
        print(f"{distance:>4}  {ids[row]}")

    ours = [hit.distance for hit in store.search(QUERY, k=5, rank="distance")]
    print(f"\nThe store says {ours}: {'the same' if ours == distances[0].tolist() else 'other'}.")

# One machine printed:
# Wrote 660 codes to codes.faiss.
#
# faiss, nearest to 'filter a signal with a window':
#    8  scipy.signal._fir_filter_design.firwin_2d
#   10  scipy.signal._fir_filter_design.kaiser_beta
#   11  scipy.signal._fir_filter_design.kaiser_atten
#   13  scipy.signal._short_time_fft.closest_STFT_dual_window
#   13  scipy.signal.windows
#
# The store says [8, 10, 11, 13, 13]: the same.
