"""What the directory store promises, tried without the component: `python -m unittest` in this directory."""

import contextlib
import os
import stat
import subprocess
import sys
import tempfile
import unittest

import directory_store
from directory_store import DirectoryStore, FileLock, Refusal, refusal_for

ANY, ABSENT = ("any", None), ("absent", None)


def change(path, action, payload=None, expect=ANY, area="tree"):
    return {"area": area, "path": path, "expect": expect, "edit": (action, payload)}


class Crash(BaseException):
    """The process ends here."""


@contextlib.contextmanager
def crash_at(step):
    """Lets the step-th change of the medium, and all after it, not happen. Yields, in a list, how many happened."""
    real = {name: getattr(os, name) for name in ("mkdir", "rename", "unlink", "pwrite", "fsync", "ftruncate")}
    done = [0]

    def gate(name):
        def call(*arguments, **keywords):
            if done[0] == step:
                raise Crash
            done[0] += 1
            return real[name](*arguments, **keywords)

        return call

    for name in real:
        setattr(os, name, gate(name))
    try:
        yield done
    finally:
        for name, function in real.items():
            setattr(os, name, function)


class StoreTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = os.path.join(scratch.name, "workspace")
        self.begin()

    def begin(self):
        self.store, self.lock = DirectoryStore(self.root), FileLock(self.root)

    def commit(self, *changes, base=None):
        guard = self.lock.acquire(0, "test")
        try:
            self.store.recover(guard)
            return self.store.commit(guard, self.store.generation() if base is None else base, list(changes))
        finally:
            guard.release()

    def refused(self, case, call, *arguments, **keywords):
        with self.assertRaises(Refusal) as caught:
            try:
                call(*arguments, **keywords)
            except OSError as error:
                raise refusal_for(error) from error
        self.assertEqual(caught.exception.case, case, caught.exception)
        return caught.exception.payload

    def text(self, path):
        return self.store.read_text("tree", path, None, 0, 1 << 20)["text"]

    def files(self):
        return {entry["path"]: self.text(entry["path"]) for entry in self.store.entries("tree", "", None, 0)["entries"]}

    def test_reading_makes_nothing(self):
        self.assertEqual(self.store.entries("tree", "", None, 0), {"entries": [], "next": None, "generation": 0})
        self.refused("not-found", self.store.stat, "tree", "a")
        self.assertIsNone(self.lock.current())
        self.assertFalse(os.path.exists(self.root))

    def test_every_edit(self):
        made = self.commit(change("a/x.md", "put", "1234", ABSENT), change("b", "append", {"length": 0, "text": "b"}))
        self.assertEqual(made["generation"], 1)
        self.assertEqual(
            made["stamps"][0], self.store.stat("tree", "a/x.md")["stamp"] | {"racy": made["stamps"][0]["racy"]}
        )
        splices = [{"offset": 1, "remove": 2, "insert": "é"}, {"offset": 4, "remove": 0, "insert": "5"}]
        self.commit(
            change("a/x.md", "splice", splices, ("same", self.store.stat("tree", "a/x.md")["stamp"])),
            change("b", "append", {"length": 1, "text": "汉"}),
        )
        self.assertEqual(self.files(), {"a/x.md": "1é45", "b": "b汉"})
        self.commit(change("b", "move-to", "c/d"), change("a/x.md", "delete"))
        self.assertEqual(self.files(), {"c/d": "b汉"})
        self.assertEqual(self.store.generation(), 3)

    def test_nothing_leads_outside(self):
        self.commit(change("in/side", "put", "x"))
        os.symlink("/etc", os.path.join(self.root, "out"))
        os.symlink("in/side", os.path.join(self.root, "link"))
        for path in (
            "",
            "/etc/passwd",
            "..",
            "../x",
            "a/../b",
            "a//b",
            "./a",
            "a\0b",
            ".git/config",
            ".scriptorium/x",
            ".GIT/x",
        ):
            self.refused("denied", self.store.read_text, "tree", path, None, 0, 10)
            path_named, inner = self.refused("failed", self.commit, change(path, "put", "x"))
            self.assertEqual((path_named, inner.case), (path, "denied"))
        for path in ("out/passwd", "link"):
            self.refused("denied", self.store.read_text, "tree", path, None, 0, 10)
            self.assertEqual(self.refused("failed", self.commit, change(path, "put", "x"))[1].case, "denied")
        kinds = {entry["path"]: entry["kind"] for entry in self.store.entries("tree", "", None, 0)["entries"]}
        self.assertEqual(kinds, {"in/side": "file", "link": "symlink", "out": "symlink"})

    def test_one_name_to_some_medium(self):
        self.commit(change("Café/a", "put", "x"))
        for path in ("CAFÉ/b", "cafe\u0301/b"):
            self.assertEqual(self.refused("collision", self.commit, change(path, "put", "x")), (path[:-2], "Café"))
        twins = change("new/A", "put", "x"), change("new/a", "put", "x")
        self.assertEqual(self.refused("collision", self.commit, *twins), ("new/a", "new/A"))
        self.refused("wrong-kind", self.commit, change("Café", "put", "x"))
        self.refused("wrong-kind", self.commit, change("Café/a/b", "put", "x"))
        self.refused("wrong-kind", self.commit, change("f", "put", "x"), change("f/g", "put", "x"))
        self.assertEqual(self.files(), {"Café/a": "x"})

    def test_expectations(self):
        self.commit(change("a", "put", "x"))
        old = self.store.stat("tree", "a")["stamp"]
        self.commit(change("a", "append", {"length": 1, "text": "y"}))
        self.assertEqual(self.refused("stale", self.commit, change("b", "put", ""), base=1), 2)
        good = change("b", "put", "")
        self.assertEqual(self.refused("changed", self.commit, good, change("a", "put", "z", ("same", old))), "a")
        self.assertEqual(self.refused("changed", self.commit, good, change("a", "put", "z", ABSENT)), "a")
        self.assertEqual(
            self.refused("changed", self.commit, good, change("a", "append", {"length": 1, "text": "z"})), "a"
        )
        self.assertEqual(self.refused("failed", self.commit, good, change("c", "delete"))[1].case, "not-found")
        self.assertEqual(self.refused("failed", self.commit, good, change("b", "delete"))[1].case, "denied")
        self.refused("changed", self.store.read_text, "tree", "a", old, 0, 1)
        self.assertEqual(self.files(), {"a": "xy"})
        self.assertEqual(os.listdir(os.path.join(self.root, ".scriptorium", "recollex")), ["journal"])

    def test_a_commit_depends_on_what_it_keeps(self):
        self.commit(change("a", "put", "1"))
        stamp = self.store.stat("tree", "a")["stamp"]
        same = ("same", {**stamp, "racy": not stamp["racy"]})
        committed = self.commit(change("a", "keep", expect=same), change("b", "put", "2", expect=("absent", None)))
        self.assertEqual((committed["generation"], committed["stamps"][0]["token"]), (2, stamp["token"]))
        committed = self.commit(change("a", "keep"), change("none", "keep", expect=("absent", None)))
        self.assertEqual((committed["generation"], committed["stamps"][1]), (2, None))
        self.commit(change("a", "put", "other"))
        self.refused("changed", self.commit, change("a", "keep", expect=same), change("c", "put", "3"))
        self.assertEqual(self.files(), {"a": "other", "b": "2"})

    def test_a_lock_whose_file_was_replaced_is_lost(self):
        self.commit(change("a", "put", "1"))
        guard = self.lock.acquire(0, "test")
        self.addCleanup(guard.release)
        os.unlink(os.path.join(self.root, ".scriptorium", "write.lock"))
        self.refused("lock-lost", self.store.commit, guard, 1, [change("a", "put", "2")])
        self.assertEqual(self.files(), {"a": "1"})

    def test_troubles(self):
        self.assertEqual(self.store.troubles(), [])
        self.commit(change("a", "put", "1"))
        os.mkdir(os.path.join(self.root, directory_store.HALF_INSTALL))
        kept = os.path.join(self.root, ".scriptorium", "recollex", "kept")
        os.mkdir(kept)
        with open(os.path.join(kept, "1-0"), "w", encoding="utf-8"):
            pass
        guard = self.lock.acquire(0, "the installer")
        try:
            self.assertEqual([trouble["code"] for trouble in self.store.troubles()], ["recovery-conflict"])
        finally:
            guard.release()
        codes = [trouble["code"] for trouble in self.store.troubles()]
        self.assertEqual(codes, ["half-install", "recovery-conflict"])

    def test_what_a_commit_erases_is_nowhere(self):
        def erase(*changes):
            guard = self.lock.acquire(0, "test")
            try:
                return self.store.commit(guard, self.store.generation(), list(changes), True)
            finally:
                guard.release()

        def where():
            paths = [os.path.join(here, name) for here, _, names in os.walk(self.root) for name in names]
            found = []
            for path in paths:
                with open(path, "rb") as file:
                    found += [path] if b"secret" in file.read() else []
            return found

        def beside(*names):
            path = os.path.join(self.root, ".scriptorium", "recollex", *names)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write("secret")
            return path

        self.commit(change("a", "put", "the secret word"))
        beside("undo", "1.15.note")
        beside("undo", "1-0.old")
        self.assertEqual(len(where()), 3)
        erase(change("a", "splice", [{"offset": 4, "remove": 6, "insert": "-"}]))
        self.assertEqual(where(), [])
        # Whoever completes it does not stop before that.
        beside("undo", "2-0.old")
        entry = {"area": "tree", "path": "b", "step": {"delete": {"before": None}}}
        with open(os.path.join(self.root, ".scriptorium", "recollex", "journal"), "wb") as file:
            file.write(directory_store.encode_journal(3, [entry], True))
        guard = self.lock.acquire(0, "test")
        self.store.recover(guard)
        guard.release()
        self.assertEqual((where(), self.store.generation()), ([], 3))
        # What lies aside may hold it: that is for a person.
        kept = beside("kept", "1-0-0.text")
        refusal = self.refused("failed", erase, change("a", "put", "x"))[1]
        self.assertEqual(refusal.case, "denied")
        os.unlink(kept)
        erase(change("a", "put", "x"))

    def test_a_directory_that_may_not_be_looked_into_is_shown(self):
        self.commit(change("d/a", "put", "1"), change("e", "put", "2"))
        step_into = directory_store.step_into

        def closed(directory, name, create=False):
            if name == "d":
                raise PermissionError(13, "closed")
            return step_into(directory, name, create)

        self.addCleanup(setattr, directory_store, "step_into", step_into)
        directory_store.step_into = closed
        entries = self.store.entries("tree", "", None, 0)["entries"]
        self.assertEqual([(entry["path"], entry["kind"]) for entry in entries], [("d", "unreadable"), ("e", "file")])

    def test_text_ends_between_characters(self):
        self.commit(change("a", "put", "é汉😀"))
        with open(os.path.join(self.root, "bad"), "wb") as file:
            file.write("ok汉".encode()[:4])
        pieces, at = [], 0
        while not (piece := self.store.read_text("tree", "a", None, at, 3))["eof"]:
            pieces.append(piece["text"])
            at = piece["next"]
        self.assertEqual([*pieces, piece["text"]], ["é", "汉", "😀"])
        self.assertEqual(self.refused("not-text", self.store.read_text, "tree", "a", None, 1, 9), 1)
        self.assertEqual(self.store.read_text("tree", "bad", None, 0, 9)["text"], "ok")
        self.assertEqual(self.refused("not-text", self.store.read_text, "tree", "bad", None, 2, 9), 2)
        self.assertEqual(self.store.read_bytes("tree", "bad", None, 2, 9)["data"], b"\xe6\xb1")

    def test_pages(self):
        names = ["a-b", "a/z", "a.md", "b", "ü", "汉"]
        self.commit(*(change(name, "put", "") for name in names))
        seen, cursor = [], None
        while True:
            page = self.store.entries("tree", "", cursor, 2)
            seen += [entry["path"] for entry in page["entries"]]
            if (cursor := page["next"]) is None:
                break
        self.assertEqual(seen, sorted(names))
        self.assertEqual([entry["path"] for entry in self.store.entries("tree", "a", None, 0)["entries"]], ["a/z"])
        for cursor in ["..", "../x", "/", "a//b", "a\0b", ".git/config"]:
            self.refused("denied", self.store.entries, "tree", "", cursor, 0)

    def test_modes(self):
        os.umask(os.umask(0))
        self.commit(change("a/b", "put", "x"), change("state", "put", "x", area="runtime"))
        self.store.put_cache("i/j", b"x")
        for directory, directories, files in os.walk(self.root):
            for name, mode in [*((name, 0o700) for name in directories), *((name, 0o600) for name in files)]:
                self.assertEqual(stat.S_IMODE(os.lstat(os.path.join(directory, name)).st_mode), mode, name)

    def test_caches(self):
        self.refused("denied", self.store.put_cache, "i", b"x")
        self.commit(change("a", "put", "x"))
        self.store.put_cache("i", b"x")
        self.store.append_cache("i", 1, b"y")
        self.refused("changed", self.store.append_cache, "i", 1, b"y")
        self.assertEqual(self.store.read_bytes("cache", "i", None, 0, 9)["data"], b"xy")
        self.store.drop_cache("i")
        self.store.drop_cache("i")
        self.assertEqual(self.store.entries("cache", "", None, 0)["entries"], [])

    def test_the_lock_dies_with_its_holder(self):
        script = "import sys, directory_store as d; d.FileLock(sys.argv[1]).acquire(0, 'other'); print('ok'); input()"
        here = os.path.dirname(os.path.abspath(directory_store.__file__))
        command = [sys.executable, "-u", "-c", script, self.root]
        with subprocess.Popen(
            command, cwd=here, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as other:
            self.assertEqual(other.stdout.readline(), b"ok\n")
            holder = {"process": other.pid, "purpose": "other"}
            self.assertEqual(self.refused("held", self.lock.acquire, 0, "me"), holder)
            self.assertEqual(self.lock.current(), holder)
            other.kill()
        self.assertIsNone(self.lock.current())
        self.lock.acquire(0, "me").release()

    def test_a_crash_at_any_step_is_all_or_nothing(self):
        def prepare():
            self.root = tempfile.mkdtemp(dir=os.path.dirname(self.root))
            self.begin()
            changes = (
                change("a", "put", "old"),
                change("b", "put", "b1"),
                change("c", "put", "c"),
                change("d", "put", "d"),
            )
            self.commit(*changes)
            return self.files()

        changes = (
            change("a", "put", "new"),
            change("b", "append", {"length": 2, "text": "b2"}),
            change("c", "delete"),
            change("d", "move-to", "e/f"),
            change("g/h", "put", "g"),
        )
        after = {"a": "new", "b": "b1b2", "e/f": "d", "g/h": "g"}
        outcomes = set()
        for step in range(200):
            before = prepare()
            with crash_at(step) as done:
                try:
                    self.commit(*changes)
                    crashed = False
                except Crash:
                    crashed = True
            self.begin()
            files = self.files()
            self.assertIn(files, (before, after), step)
            outcomes.add(files == after)
            self.assertEqual(self.store.generation(), 2 if files == after else 1)
            self.commit(change("next", "put", ""))
            self.assertEqual(self.files(), files | {"next": ""})
            if not crashed:
                break
        self.assertGreater(done[0], 20)
        self.assertEqual(outcomes, {True, False})

    def test_a_torn_addition_is_completed(self):
        pwrite = os.pwrite
        self.addCleanup(setattr, os, "pwrite", pwrite)
        for torn, expected in ((b"", "12345"), (b"23", "12345"), (b"2\0\0\0", "12345"), (b"2x", None)):
            self.commit(change("a", "put", "1"))

            def tear(descriptor, data, offset, torn=torn):
                if bytes(data) == b"2345":
                    pwrite(descriptor, torn, offset)
                    raise Crash
                return pwrite(descriptor, data, offset)

            os.pwrite = tear
            with self.assertRaises(Crash):
                self.commit(change("a", "append", {"length": 1, "text": "2345"}))
            os.pwrite = pwrite
            self.begin()
            if expected is not None:
                self.assertEqual(self.text("a"), expected)
            else:
                # Another program wrote there since: nothing is overwritten, and nothing is read as if all were well.
                self.refused("io", self.text, "a")
                with open(os.path.join(self.root, "a"), encoding="utf-8") as file:
                    self.assertEqual(file.read(), "12x")


if __name__ == "__main__":
    unittest.main()
