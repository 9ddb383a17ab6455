#!/usr/bin/env python3
"""Measures other search engines on the corpus and the queries of the benchmark `search`.

    bench --corpus 100000 > corpus.jsonl
    peers.py [--only NAME] corpus.jsonl

Prints a JSON line a figure, as `bench` does: seconds to index the texts, MiB of files, MiB of a process that has answered
all queries from them, milliseconds from the start of a process to its first answer, of a query (every one was asked once
before), and until a text that is added has been found. Each engine finds ten hits by BM25 over the same texts, with the
name of who spoke in front, and takes words to their English stems. Building uses one thread.

SQLite and bm25s run here, tantivy and the crate bm25 in `peers/` (`cargo build --release` there), if that is built.
"""

import time

START = time.perf_counter()

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

HITS = 10
ADDED = 20
# Seconds for a pass over the queries: whoever needs longer is asked fewer, in their order.
LONGEST = 60
HERE = pathlib.Path(__file__).resolve().parent
RUST = HERE / "peers/target/release/recollex-peers"
FIGURES = {"build": "s", "size": "MiB", "memory": "MiB", "first": "ms", "p50": "ms", "p99": "ms", "append": "ms"}


def messages(corpus):
    with open(corpus, encoding="utf-8") as lines:
        for line in lines:
            line = json.loads(line)
            if "query" in line:
                return
            yield f"{line['speaker']}: {line['text']}" if line["speaker"] else line["text"]


def queries(corpus):
    with open(corpus, encoding="utf-8") as lines:
        return [json.loads(line)["query"] for line in lines if line.startswith('{"query"')]


class Fts5:
    """SQLite with FTS5 and its porter tokenizer, without a copy of the texts."""

    @staticmethod
    def connect(directory):
        import sqlite3

        return sqlite3.connect(directory / "fts5.db")

    @classmethod
    def build(cls, directory, texts):
        database = cls.connect(directory)
        database.execute("CREATE VIRTUAL TABLE said USING fts5(text, content='', tokenize='porter unicode61')")
        database.executemany("INSERT INTO said(rowid, text) VALUES (?, ?)", enumerate(texts, 1))
        database.commit()
        database.close()

    def __init__(self, directory):
        self.database = self.connect(directory)

    def ask(self, query):
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query))
        rows = self.database.execute("SELECT rowid FROM said WHERE said MATCH ? ORDER BY rank LIMIT ?", (words, HITS))
        return [row[0] - 1 for row in rows]

    def add(self, number, text):
        self.database.execute("INSERT INTO said(rowid, text) VALUES (?, ?)", (number + 1, text))
        self.database.commit()


class Bm25s:
    """bm25s with numba. An index cannot be added to."""

    add = None

    @staticmethod
    def tokens(texts):
        import Stemmer
        import bm25s

        stemmer = Stemmer.Stemmer("english")
        return bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, return_ids=False, show_progress=False)

    @classmethod
    def build(cls, directory, texts):
        import bm25s

        index = bm25s.BM25(backend="numba")
        index.index(cls.tokens(texts), show_progress=False)
        index.save(directory / "bm25s", show_progress=False)

    def __init__(self, directory):
        import bm25s

        self.index = bm25s.BM25.load(directory / "bm25s", show_progress=False)

    def ask(self, query):
        found = self.index.retrieve(self.tokens([query]), k=HITS, show_progress=False)
        return found.documents[0].tolist()


PEERS = {"fts5": Fts5, "bm25s": Bm25s}
NAMES = [*PEERS, "tantivy", "bm25"]


def timed(work):
    start = time.perf_counter()
    result = work()
    return (time.perf_counter() - start) * 1e3, result


def build(peer, corpus, directory):
    texts = list(messages(corpus))
    milliseconds, _ = timed(lambda: peer.build(directory, texts))
    size = sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())
    return {"n": len(texts), "build": milliseconds / 1e3, "size": size / 2**20}


def memory():
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


def one_pass(engine, asked):
    """Milliseconds of each query."""
    end, times = time.perf_counter() + LONGEST, []
    for query in asked:
        times.append(timed(lambda: engine.ask(query))[0])
        if time.perf_counter() > end:
            break
    return times


def ask(peer, corpus, directory):
    before = time.perf_counter()
    asked = queries(corpus)
    read = time.perf_counter() - before
    engine = peer(directory)
    engine.ask(asked[0])
    figures = {"first": (time.perf_counter() - START - read) * 1e3}
    one_pass(engine, asked)
    times = sorted(one_pass(engine, asked))
    figures |= {"p50": times[len(times) // 2], "p99": times[len(times) * 99 // 100], "memory": memory()}
    if engine.add:
        text, count = next(messages(corpus)), sum(1 for _ in messages(corpus))
        added = []
        for number in range(ADDED):
            marker = f"added{number}"

            def add_and_find():
                engine.add(count + number, f"{marker}, {text}")
                return engine.ask(marker)

            milliseconds, found = timed(add_and_find)
            assert found[0] == count + number, f"{marker} is not found, but {found}"
            added.append(milliseconds)
        figures["append"] = statistics.median(added)
    return figures


def rounded(value):
    return None if value is None else round(value, 2) if abs(value) >= 1 else float(f"{value:.3g}")


def measure(name, corpus):
    """Builds and asks in processes of their own, so that neither has what the other left in memory."""
    figures = {}
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, __file__, "--step"] if name in PEERS else [RUST]
        for step in ("build", "ask"):
            output = subprocess.run([*command, step, name, corpus, directory], check=True, stdout=subprocess.PIPE)
            figures |= json.loads(output.stdout)
    for figure, unit in FIGURES.items():
        line = {"name": f"search-{name}-{figure}", "n": figures["n"], "unit": unit, "native": rounded(figures.get(figure))}
        print(json.dumps(line | {"wasm": None, "ratio": None}, separators=(",", ":")), flush=True)


def main():
    if sys.argv[1:2] == ["--step"]:
        step, name, corpus, directory = sys.argv[2:]
        step = {"build": build, "ask": ask}[step]
        print(json.dumps(step(PEERS[name], corpus, pathlib.Path(directory))))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=NAMES, action="append")
    parser.add_argument("corpus")
    arguments = parser.parse_args()
    for name in arguments.only or NAMES:
        if name in PEERS or RUST.exists():
            measure(name, arguments.corpus)
        else:
            print(f"{name}: not measured: build {RUST.parent.parent.parent} with cargo build --release", file=sys.stderr)


if __name__ == "__main__":
    main()
