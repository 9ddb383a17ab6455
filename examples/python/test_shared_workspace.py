"""Two hosts on one directory: what this one leaves behind in a crash, the command `recollex` shows whole and completes.

Needs the command: `RECOLLEX_BIN=target/debug/recollex python -m unittest discover examples/python`.
"""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

from directory_store import DirectoryStore, FileLock
from test_directory_store import Crash, change, crash_at

BINARY = os.environ.get("RECOLLEX_BIN")
SAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "conversation.jsonl")
ADDED = "sources/openprogram/_v2/repair.md"
REMOVED = "sources/channel-telegram/_v2/harbour%3Alaunch.md"
NEW = "topics/new.md"


@unittest.skipUnless(BINARY, "RECOLLEX_BIN does not name the command `recollex`")
class SharedWorkspaceTest(unittest.TestCase):
    def recollex(self, *arguments, stdin=""):
        command = [BINARY, "--json", "--workspace", self.root, *arguments]
        run = subprocess.run(command, input=stdin, capture_output=True, encoding="utf-8", check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)

    def test_a_crash_here_is_completed_there(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = template = os.path.join(scratch.name, "template")
        self.recollex("archive", "--chunk", SAMPLE)
        outcomes = set()
        for step in range(100):
            self.root = os.path.join(scratch.name, str(step))
            shutil.copytree(template, self.root)
            crashed = self.commit_until(step)
            counts = self.recollex("status")["counts"]
            seen = counts["source_files"], counts["topic_files"]
            self.assertIn(seen, [(3, 0), (2, 1)], f"half a commit is shown after step {step}")
            self.recollex("archive", "--provider", "p", "--thread", "t", stdin='{"id":"1","role":"user","text":"x"}\n')
            self.assertEqual(
                (os.path.exists(self.path(NEW)), os.path.exists(self.path(REMOVED))), (seen[1] == 1, seen[1] == 0)
            )
            self.assertEqual(
                os.path.getsize(self.path(".scriptorium/recollex/journal")), 80, "the commit is not settled"
            )
            outcomes.add(seen)
            if not crashed:
                break
        self.assertEqual(len(outcomes), 2)

    def path(self, relative):
        return os.path.join(self.root, relative)

    def commit_until(self, step):
        store, lock = DirectoryStore(self.root), FileLock(self.root)
        length = store.stat("tree", ADDED)["stamp"]["size"]
        generation = store.generation()
        guard = lock.acquire(0, "test")
        try:
            with crash_at(step):
                changes = [
                    change(ADDED, "append", {"length": length, "text": "\n"}),
                    change(NEW, "put", "new\n"),
                    change(REMOVED, "delete"),
                ]
                store.commit(guard, generation, changes)
        except Crash:
            return True
        finally:
            guard.release()
        return False


if __name__ == "__main__":
    unittest.main()
