"""What is fuzzed: valid files of each kind, mutants of them, and what a user does with them."""

import gzip
import hashlib
import io
import json
import shutil
import sqlite3
import tarfile
import zipfile
import zlib
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import orjson
from safetensors.numpy import load, save

import mutants
from vdsh import TextHasher, corpus_map
from vdsh.documents import Document, read_documents
from vdsh.documents.readers import read_file
from vdsh.documents.split import place_of, split_text
from vdsh.paper.datasets.formats import read_vectors
from vdsh.search import HammingIndex
from vdsh.search.index_file import FORMAT, MAGIC, map_arrays, write_arrays
from vdsh.server.tokens import read_tokens
from vdsh.store import open_store, restore_store
from vdsh.store.maintenance import ABOUT
from vdsh.words.blocks import StoredSegment, to_blocks

WORDS = "orbit rocket shuttle launch moon crew goal match player season team coach".split()
TEXTS = [f"{WORDS[i % 12]} {WORDS[(5 * i + 1) % 12]} {WORDS[(7 * i + 2) % 12]}" for i in range(32)]
RECORDS = [
    {
        "id": f"d{i}",
        "text": text,
        "labels": ["a", "b"][: i % 3],
        "year": 1990 + i,
        "more": {"x": [i]},
    }
    for i, text in enumerate(TEXTS[:6])
]


class Documents:
    """A file of documents, read to its end."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.valid = {"jsonl": _jsonl, "csv": _table, "tsv": _table, "text": _lines}[kind](kind)

    def write(self, folder: Path, rng: Random) -> None:
        data = self._structured(rng) if rng.random() < 0.5 else mutants.of_bytes(self.valid, rng)
        packed = rng.random() < 0.15
        if packed:
            data = gzip.compress(data, 1)
            data = mutants.of_bytes(data, rng) if rng.random() < 0.7 else data
        (folder / f"documents.{self.kind}{'.gz' * packed}").write_bytes(data)

    def use(self, folder: Path, rng: Random) -> None:
        (path,) = folder.iterdir()
        for _ in read_documents(path, format=self.kind):
            pass

    def _structured(self, rng: Random) -> bytes:
        lines = self.valid.decode().splitlines()
        row = rng.randrange(len(lines))
        if self.kind == "jsonl":
            lines[row] = mutants.of_json(RECORDS[row], rng)
            return "\n".join(lines).encode(errors="replace")
        mark = {"csv": ",", "tsv": "\t"}.get(self.kind, " ")
        cells = lines[row].split(mark)
        cells[rng.randrange(len(cells))] = rng.choice(mutants.PIECES).decode(errors="replace")
        lines[row] = mark.join(cells)
        return "\n".join(lines).encode()


class Parquet:
    """A Parquet file: bytes changed, or columns of types that nobody expects."""

    def __init__(self) -> None:
        self.valid = self._file([str(r["text"]) for r in RECORDS], [1990.0] * len(RECORDS))

    def write(self, folder: Path, rng: Random) -> None:
        if rng.random() < 0.7:
            data = mutants.of_bytes(self.valid, rng)
        else:
            data = self._file(*([self._cell(rng)] * 3 for _ in range(2)))
        (folder / "documents.parquet").write_bytes(data)

    def use(self, folder: Path, rng: Random) -> None:
        for _ in read_documents(folder / "documents.parquet"):
            pass

    def _cell(self, rng: Random) -> Any:
        import datetime
        import decimal

        now = datetime.datetime(2020, 1, 1)
        values = [now, now.date(), now.time(), decimal.Decimal("1.5"), b"\xff", [1], {"a": 1}]
        return rng.choice([*values, None, "x", 1, 1.5, float("nan"), True, datetime.timedelta(1)])

    def _file(self, texts: list[Any], years: list[Any]) -> bytes:
        import pyarrow as pa
        import pyarrow.parquet as pq

        sink = io.BytesIO()
        pq.write_table(pa.table({"text": texts, "year": years}), sink)
        return sink.getvalue()


class Tokens:
    """A file of tokens, closed to others."""

    lines = "# people\nann write 5d41402abc4b2a76b9719d911017c592\n"
    valid = f"{lines}page read 7d793037a0760186574b0282f2f435e7\n".encode()

    def write(self, folder: Path, rng: Random) -> None:
        data = self.valid if rng.random() < 0.8 else self.valid.splitlines()[-1].split()[-1]
        (folder / "tokens").write_bytes(mutants.of_bytes(data, rng))
        (folder / "tokens").chmod(0o600 if rng.random() < 0.9 else rng.randrange(0o1000) | 0o400)

    def use(self, folder: Path, rng: Random) -> None:
        known = read_tokens(str(folder / "tokens"))
        assert known is not None and known.known, "a file that lets nobody in"
        assert known.find(b"Bearer ") is None, "no token at all lets in"


class Files:
    """A file of a folder: a page, a notebook, a PDF, a Word document."""

    KINDS = ("html", "md", "ipynb", "pdf", "docx")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        texts = TEXTS[:3]
        pages = [f"<title>{t}</title><nav>x</nav><h2>{t}</h2><pre>{t}</pre>" for t in texts]
        cells = {"cells": [{"source": [text]} for text in texts]}
        self.valid = {
            "html": lambda: "".join(pages).encode(),
            "md": lambda: f"---\ntitle: x\n---\n{'# '.join(texts)}".encode(),
            "ipynb": lambda: json.dumps(cells).encode(),
            "pdf": lambda: make_pdf(texts),
            "docx": lambda: make_docx(texts),
        }[kind]()

    def write(self, folder: Path, rng: Random) -> None:
        data = mutants.of_bytes(self.valid, rng)
        if self.kind == "docx" and rng.random() < 0.5:  # damage behind good check sums
            data = make_docx([mutants.of_bytes(b"some words", rng).decode(errors="replace")])
        packed = rng.random() < 0.1
        path = folder / f"x.{self.kind}{'.gz' * packed}"
        path.write_bytes(gzip.compress(data, 1) if packed else data)
        self.path = path

    def use(self, folder: Path, rng: Random) -> None:
        text, title = read_file(self.path)
        spans = split_text(text)
        assert not spans or spans[-1][1] == len(text), "passages that lose the end"
        place_of(text, rng.randrange(len(text) + 1))
        f"{text}{title}".encode()


def make_pdf(pages: list[str]) -> bytes:
    """Make a small PDF with a line a page."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    parts = ["<</Type/Catalog/Pages 2 0 R>>", f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>"]
    parts += ["<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    for number, words in enumerate(pages):
        fonts = "/Resources<</Font<</F1 3 0 R>>>>/MediaBox[0 0 300 300]"
        parts += [f"<</Type/Page/Parent 2 0 R{fonts}/Contents {5 + 2 * number} 0 R>>"]
        drawn = f"BT /F1 12 Tf 20 200 Td ({words}) Tj ET" if words else ""
        parts += [f"<</Length {len(drawn)}>>stream\n{drawn}\nendstream"]
    out, places = "%PDF-1.4\n", []
    for number, part in enumerate(parts, 1):
        places.append(f"{len(out):010} 00000 n \n")
        out += f"{number} 0 obj\n{part}\nendobj\n"
    table = f"xref\n0 {len(parts) + 1}\n0000000000 65535 f \n{''.join(places)}"
    trailer = f"trailer<</Root 1 0 R/Size {len(parts) + 1}>>"
    return f"{out}{table}{trailer}\nstartxref\n{len(out)}\n%%EOF".encode()


WORD_XML = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def make_docx(paragraphs: list[str], declared: str = "") -> bytes:
    """Make a Word document of nothing but text."""
    body = "".join(f"<w:p><w:r><w:t>{words}</w:t></w:r></w:p>" for words in paragraphs)
    with zipfile.ZipFile(out := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as file:
        xml = f'{declared}<w:document xmlns:w="{WORD_XML}"><w:body>{body}</w:body></w:document>'
        file.writestr("word/document.xml", xml.encode(errors="replace"))
    return out.getvalue()


class Vectors:
    """LIBSVM lines of a corpus that came as counts."""

    valid = b"0,2 1:3 5:1 # train/1\n1 2:1.5 3:2 # test/2\n2 7:1 # train/3\n"

    def write(self, folder: Path, rng: Random) -> None:
        (folder / "counts.svm").write_bytes(mutants.of_bytes(self.valid, rng))

    def use(self, folder: Path, rng: Random) -> None:
        read_vectors(folder / "counts.svm", n_terms=10)


class Model:
    """A model folder; most mutants have good checksums, as somebody's would who means harm."""

    def __init__(self, names: list[str], scratch: Path) -> None:
        self.valid = []
        labels = ["space" if i % 2 else "sport" for i in range(len(TEXTS))]
        for name in names:
            quick = {"epochs": 1, "hidden_size": 8, "decoder_size": 4, "device": "cpu"}
            hasher = TextHasher(name, 16, random_state=0)
            known = hasher._parts()[1].get_params()
            hasher.set_params(**{k: v for k, v in quick.items() if k in known})
            hasher.fit(TEXTS, labels, progress=False).save(scratch / name)
            self.valid.append({f.name: f.read_bytes() for f in (scratch / name).iterdir()})

    def write(self, folder: Path, rng: Random) -> None:
        files = dict(rng.choice(self.valid))
        manifest = json.loads(files["manifest.json"])
        kind = rng.choice(("bytes", "manifest", "manifest", "weights", "weights", "vocabulary"))
        name = {"weights": "weights.safetensors", "vocabulary": "vocabulary.txt"}.get(kind, "")
        if kind == "bytes":
            name = rng.choice(("weights.safetensors", "vocabulary.txt", "manifest.json"))
            files[name] = mutants.of_bytes(files[name], rng)
        elif kind == "weights":
            weights = load(files[name])
            for chosen in rng.sample(sorted(weights), rng.choice((1, 1, 2))):
                weights[chosen] = mutants.of_array(weights[chosen], rng)
            files[name] = save(weights)
        elif kind == "vocabulary":
            files[name] = mutants.of_bytes(files[name], rng)
        if rng.random() < 0.9 and name != "manifest.json":
            for sealed, facts in manifest["files"].items():
                data = files[sealed]
                facts |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            files["manifest.json"] = json.dumps(manifest).encode()
        if kind == "manifest":
            files["manifest.json"] = mutants.of_json(manifest, rng).encode(errors="replace")
        for name, data in files.items():
            (folder / name).write_bytes(data)

    def use(self, folder: Path, rng: Random) -> None:
        hasher = TextHasher.load(folder)
        hasher.encode([*TEXTS[:3], "nothing known"])
        if rng.random() < 0.1:
            hasher.save(folder / "again")


class Index:
    """An index file: bytes, the header, or the arrays, with good checksums."""

    def __init__(self, scratch: Path) -> None:
        rng = np.random.default_rng(0)
        codes = np.repeat(rng.integers(0, 256, (60, 2), np.uint8), 25, axis=0)
        self.code = codes[0]
        self.valid, self.parts = [], []
        strings = HammingIndex(codes, ids=[f"id {i * 7 % 1500}" for i in range(1500)])
        integers = HammingIndex(codes, ids=rng.permutation(1500))
        integers.remove([3, 4])
        for number, index in enumerate((strings, integers, HammingIndex(codes[:70]))):
            index.save(path := scratch / f"index{number}")
            self.valid.append(path.read_bytes())
            facts, arrays = map_arrays(path)
            self.parts.append((facts, {name: a.copy() for name, a in arrays.items()}))

    def write(self, folder: Path, rng: Random) -> None:
        number, path = rng.randrange(3), folder / "index"
        kind = rng.randrange(4)
        if kind == 0:
            path.write_bytes(mutants.of_bytes(self.valid[number], rng))
        elif kind == 1:
            path.write_bytes(self._with_header(self.valid[number], rng))
        else:
            facts, arrays = self.parts[number]
            chosen = rng.choice(sorted(arrays))
            arrays = arrays | {chosen: mutants.of_array(arrays[chosen], rng)}
            if kind == 3:
                facts = facts | {rng.choice(sorted(facts)): mutants.odd(rng)}
            try:
                write_arrays(path, facts, arrays)
            except TypeError:  # bytes, which JSON has not
                path.write_bytes(b"")

    def _with_header(self, data: bytes, rng: Random) -> bytes:
        begin = len(MAGIC) + 16
        length = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 8], "little")
        header = json.loads(data[begin : begin + length])
        assert header["format"] == FORMAT
        text = mutants.of_json(header, rng).encode(errors="replace")
        lengths = np.array([len(text), zlib.crc32(text)], "<u8").tobytes()
        start, before = (-(-(begin + n) // 64) * 64 for n in (len(text), length))
        return (MAGIC + lengths + text).ljust(start, b"\0") + data[before:]

    def use(self, folder: Path, rng: Random) -> None:
        index = HammingIndex.open(folder / "index", threads=1)
        if not index.n_bits == 16:
            return
        index.search(self.code, k=7)
        index.within(self.code, 3)
        if rng.random() < 0.2 and len(index):
            index.remove(index.search(self.code, k=1).ids)
            index.save(folder / "again")


class Store:
    """A store: bytes of its files, and rows that vdsh would not write."""

    COLUMNS = {
        "meta": ("key", "value"),
        "documents": ("id", "text", "labels", "metadata", "code", "row"),
        "tombstones": ("row", "id"),
        "fields": ("name",),
        "words": ("segment", "first", "span", "docs", "size", "data"),
        "word_blocks": ("segment", "block", "data"),
        "word_tombstones": ("segment", "places"),
        "models": ("fingerprint", "file", "piece", "data"),
        "sqlite_sequence": ("name", "seq"),
    }

    def __init__(self, scratch: Path) -> None:
        hasher = TextHasher("lsh", 16, random_state=0).fit(TEXTS, progress=False)
        with open_store(scratch / "store", hasher) as store:
            documents = [
                Document(f"d{i}", text, ("a",), {"year": 1990 + i}) for i, text in enumerate(TEXTS)
            ]
            store.upsert(documents)
            store.delete(["d3"])
            store.upsert([Document("d32", "orbit moon"), Document("d33", "")])
            store.search("orbit")
        self.valid = scratch / "store"
        self.code = hasher.encode(["orbit moon"])[0]

    def write(self, folder: Path, rng: Random) -> None:
        shutil.copytree(self.valid, folder, dirs_exist_ok=True, copy_function=shutil.copyfile)
        kind = rng.randrange(6)
        (index,) = folder.glob("index-*")
        if kind == 0:
            self._change_bytes(folder / "store.sqlite", rng)
        elif kind == 1:
            self._change_bytes(index, rng)
        elif kind == 2:
            self._change_words(folder / "store.sqlite", rng)
        else:
            self._change_rows(folder / "store.sqlite", rng)
        if rng.random() < 0.5:
            index.unlink()

    def _change_bytes(self, path: Path, rng: Random) -> None:
        data = path.read_bytes()
        if rng.random() < 0.3:  # where the header and the schema are
            path.write_bytes(mutants.of_bytes(data[:4096], rng) + data[4096:])
        else:
            path.write_bytes(mutants.of_bytes(data, rng))

    def _change_rows(self, path: Path, rng: Random) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("PRAGMA synchronous=OFF")
            for _ in range(rng.choice((1, 1, 2))):
                table = rng.choice(sorted(self.COLUMNS))
                column = rng.choice(self.COLUMNS[table])
                value = mutants.odd(rng)
                if isinstance(value, list | dict) or rng.random() < 0.2:
                    value = json.dumps(value) if isinstance(value, list | dict) else "[" * 3000
                value = value if not isinstance(value, int) or abs(value) < 2**63 else str(value)
                some = rng.choice(("", f" WHERE rowid % {rng.randrange(1, 9)} = 0"))
                if table in ("meta", "fields"):
                    some = ""
                if table == "meta":
                    keys = ("uuid", "n_bits", "format", "fingerprint", "words")
                    some = f" WHERE key = '{rng.choice(keys)}'"
                try:
                    connection.execute(f"UPDATE {table} SET {column} = ?{some}", (value,))
                except sqlite3.IntegrityError:
                    pass  # SQLite itself holds the schema

    def _change_words(self, path: Path, rng: Random) -> None:
        """Change the arrays of a piece, with a good check sum, as who means harm would."""
        with closing(sqlite3.connect(path)) as connection, connection:
            query = "SELECT segment, first, size, data FROM words ORDER BY first"
            number, first, size, head = rng.choice(connection.execute(query).fetchall())
            query = "SELECT data FROM word_blocks WHERE segment = ? ORDER BY block"
            blocks = [data for (data,) in connection.execute(query, (number,))]
            stored = StoredSegment(head, first, np.zeros(0, np.uint16), size)
            piece = stored.whole(lambda numbers: blocks)
            name = rng.choice(("hashes", "offsets", "places", "counts", "lengths"))
            inside = rng.random() < 0.3
            part = piece.passages.postings if inside else piece.documents
            array = getattr(part, name)
            with suppress(ValueError, TypeError):  # an array that cannot be written
                odd = mutants.of_array(array, rng).reshape(-1).astype(array.dtype)
                part = part._replace(**{name: odd})
                passages = piece.passages._replace(postings=part)
                changed = {"passages": passages} if inside else {"documents": part}
                head, blocks = to_blocks(piece._replace(**changed))
            if rng.random() < 0.2:
                head = mutants.of_bytes(head, rng)
            if rng.random() < 0.2:
                place = rng.randrange(len(blocks))
                blocks[place] = mutants.of_bytes(blocks[place], rng)
            connection.execute("UPDATE words SET data = ? WHERE segment = ?", (head, number))
            connection.execute("DELETE FROM word_blocks WHERE segment = ?", (number,))
            rows = [(number, place, data) for place, data in enumerate(blocks)]
            connection.executemany("INSERT INTO word_blocks VALUES (?, ?, ?)", rows)

    def use(self, folder: Path, rng: Random) -> None:
        uses = [
            lambda s: s.search(self.code, k=5),
            lambda s: s.within(self.code, 4, where={"year": {">": 1995}}),
            lambda s: s.count({"labels": ["a"]}),
            lambda s: [list(s.documents()), s.labels(), s.info()],
            lambda s: [s.get("d1"), s.find("d2"), list(s.codes()), list(s.entries())],
            lambda s: s.upsert([Document("new", "orbit")], self.code[None]),
            lambda s: s.delete(["d1", "d2"]),
        ]
        uses += [lambda s: s.search('orbit moon "goal match" -team')] * 2
        uses += [lambda s: _check_scores(s.search("orbit moon"))] * 3
        with open_store(folder, wait=0.1) as store:
            rng.choice(uses)(store)
            store.search(self.code)


class Backup:
    """A backup: its bytes, its members, or the store inside."""

    def __init__(self, store: Store, scratch: Path) -> None:
        self.store = store
        with open_store(store.valid) as opened:
            opened.back_up(scratch / "backup.vdsh")
        self.valid = (scratch / "backup.vdsh").read_bytes()

    def write(self, folder: Path, rng: Random) -> None:
        n = rng.choice((2048, len(self.valid)))  # heads of members lie in the beginning
        data = mutants.of_bytes(self.valid[:n], rng) + self.valid[n:]
        if rng.random() < 0.3:
            self.store.write(folder / "inside", rng)
            data = self._packed(folder / "inside" / "store.sqlite", rng)
            shutil.rmtree(folder / "inside")
        (folder / "backup").write_bytes(data)

    def _packed(self, database: Path, rng: Random) -> bytes:
        about = {"vdsh": "backup", "parts": ["store.sqlite"]}
        text = mutants.of_json(about, rng) if rng.random() < 0.3 else json.dumps(about)
        parts = [(ABOUT, text.encode(errors="replace")), ("store.sqlite", database.read_bytes())]
        parts += [(rng.choice(("map.safetensors", "../up", "/tmp/x")), b"x")] * (rng.random() < 0.3)
        with tarfile.open(fileobj=(file := io.BytesIO()), mode="w") as archive:
            for name, data in parts:
                member = tarfile.TarInfo(name)
                member.size = len(data)
                member.type = b"0" if rng.random() < 0.9 else rng.choice(tarfile.SUPPORTED_TYPES)
                archive.addfile(member, io.BytesIO(data))
        return file.getvalue()

    def use(self, folder: Path, rng: Random) -> None:
        with restore_store(folder / "backup", folder / "restored") as store:
            store.search("orbit moon")


class Map:
    """A map of a store: bytes, names and facts, arrays; placed on and answered as a page does."""

    def __init__(self, scratch: Path) -> None:
        rng, n = np.random.default_rng(0), 12
        arrays = [rng.uniform(-1, 1, (n, m)).astype(np.float32) for m in (2, 16)]
        names = [f"d{i}" for i in range(n)]
        facts = {"documents": n, "seed": 0, "fingerprint": "f" * 64}
        label = np.array([-1, 0, 1] * 4, np.int32)
        corpus_map.save(
            scratch / "map", corpus_map.CorpusMap(names, names, *arrays, label, ["a", "b"], facts)
        )
        self.valid, self.facts = (scratch / "map").read_bytes(), facts
        self.arrays = load(self.valid)

    def write(self, folder: Path, rng: Random) -> None:
        arrays, facts, kind = dict(self.arrays), json.dumps(self.facts), rng.randrange(4)
        if kind == 0:
            name = rng.choice(sorted(arrays))
            arrays[name] = mutants.of_array(arrays[name], rng)
        elif kind == 1:
            names = json.loads(arrays["names"].tobytes())
            text = mutants.of_json(names, rng).encode(errors="surrogatepass")
            arrays["names"] = np.frombuffer(text, np.uint8)
        elif kind == 2:
            facts = mutants.of_json(self.facts, rng).encode(errors="replace").decode()
        data = save(arrays, {"format": "1", "facts": facts})
        (folder / "map").write_bytes(mutants.of_bytes(data, rng) if kind == 3 else data)

    def use(self, folder: Path, rng: Random) -> None:
        found = corpus_map.load(folder / "map")
        found.point("d1")
        if len(found):
            place = found.place(np.zeros(found.scores.shape[1], np.float32))
            assert np.isfinite(place).all(), "a place that is no number"
        orjson.dumps([found.ids, found.titles, found.labels, found.points.tolist(), found.facts])


def _check_scores(hits: Any) -> None:
    assert np.isfinite([hit.score for hit in hits]).all(), "a score that is no number"


def targets(scratch: Path, models: list[str]) -> dict[str, Any]:
    """Make every target; `scratch` is a folder for valid files."""
    store = Store(scratch)
    return {
        **{kind: Documents(kind) for kind in ("jsonl", "csv", "tsv", "text")},
        "parquet": Parquet(),
        **{kind: Files(kind) for kind in Files.KINDS},
        "svm": Vectors(),
        "tokens": Tokens(),
        "model": Model(models, scratch),
        "index": Index(scratch),
        "store": store,
        "backup": Backup(store, scratch),
        "map": Map(scratch),
    }


def _jsonl(kind: str) -> bytes:
    return "\n".join(json.dumps(record) for record in RECORDS).encode()


def _table(kind: str) -> bytes:
    mark = {"csv": ",", "tsv": "\t"}[kind]
    rows = [["id", "text", "labels", "year"]]
    rows += [[r["id"], f'"{r["text"]}"', ";".join(r["labels"]), str(r["year"])] for r in RECORDS]
    return "\n".join(mark.join(row) for row in rows).encode()


def _lines(kind: str) -> bytes:
    return "\n".join(TEXTS[:6]).encode()
