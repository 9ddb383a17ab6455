"""A host for the component `memory`, in Python: what it imports, and how its exports are called.

Read `wit/README.md` first, then this file from top to bottom; `directory_store.py` holds the store and the lock.
Values cross as dictionaries with the names of the WIT records. A failure is an exception: `Failed` when the component
answers an error, `Trapped` when it does not answer at all. After either, the next call works.
"""

import contextlib
import itertools
import logging
import os
import threading
import time

import wasmtime
from wasmtime import component as wc

from directory_store import DirectoryStore, FileLock, Refusal, refusal_for

PACKAGE, VERSION = "recollex:memory", "0.1.0"
WORKSPACE = f"{PACKAGE}/workspace@{VERSION}"
WASI = "0.2.12"
GUARD = 1  # the number of our only resource type
MEMORY = 1 << 30  # bytes a component may use
DEADLINE = 60.0  # seconds a call may take
TICK = 0.1  # seconds between two looks at the deadline

log = logging.getLogger("recollex")


class Failed(Exception):
    """The component answered an error: the case of `types.error`, and its payload."""

    def __init__(self, case, payload):
        super().__init__(f"{case}: {payload}")
        self.case, self.payload = case, payload


class Trapped(Exception):
    """The component was stopped: a fault of its own, or a limit of time or memory."""


class Unfit(Exception):
    """The component asks for something this host does not have, or lacks something it needs."""


# Values. Python knows no hyphens in names, so records are built from dictionaries and turned back into them.


def lower(value):
    """What wasmtime takes, from what this module uses."""
    if isinstance(value, Refusal):
        return wc.Variant(value.case, lower(value.payload))
    if isinstance(value, dict):
        record = wc.Record()
        record.__dict__.update((name, lower(field)) for name, field in value.items())
        return record
    if isinstance(value, list):
        return [lower(item) for item in value]
    if isinstance(value, tuple):
        return tuple(lower(item) for item in value)
    return value


def lift(value):
    """The reverse. A variant becomes a pair of its case's name and its payload."""
    if isinstance(value, wc.Record):
        return {name: lift(field) for name, field in value.__dict__.items()}
    if isinstance(value, wc.Variant):
        return value.tag, lift(value.payload)
    if isinstance(value, list):
        return [lift(item) for item in value]
    if isinstance(value, tuple):
        return tuple(lift(item) for item in value)
    return value


def answering(function):
    """An import, as wasmtime calls it. No exception passes: it would be a trap."""

    def call(caller, *arguments):
        try:
            return lower(function(caller, *(lift(argument) for argument in arguments)))
        except Refusal as refusal:
            return lower(refusal)
        except OSError as error:
            return lower(refusal_for(error))

    return call


class Imports:
    """What one session may use: one directory, its lock, a clock, randomness, a log."""

    def __init__(self, root):
        self.store = DirectoryStore(root)
        self.lock = FileLock(root)
        self.guards = {}
        self.numbers = itertools.count(1)

    def close(self):
        """Gives back what the component holds. After a trap nobody else does: its destructors do not run."""
        for guard in self.guards.values():
            guard.release()
        self.guards.clear()

    def link(self, linker):
        store = self.store
        with linker.root() as root:
            with root.add_instance(f"wasi:clocks/wall-clock@{WASI}") as clock:
                clock.add_func("now", lambda _: lower(instant(time.time_ns())))
                clock.add_func("resolution", lambda _: lower(instant(1000)))
            with root.add_instance(f"wasi:random/random@{WASI}") as random:
                random.add_func("get-random-bytes", lambda _, length: os.urandom(length))
                random.add_func("get-random-u64", lambda _: int.from_bytes(os.urandom(8), "little"))
            with root.add_instance(f"{PACKAGE}/log@{VERSION}") as instance:
                instance.add_func("write", lambda _, level, message: log.log(LEVELS[level], "%s", message))
                instance.add_func("event", lambda _, name, fields: log.debug("%s %s", name, dict(fields)))
                instance.add_func(
                    "progress", lambda _, task, done, total, unit: log.debug("%s %d/%d %s", task, done, total, unit)
                )
            with root.add_instance(f"{PACKAGE}/lock@{VERSION}") as instance:
                instance.add_resource("guard", wc.ResourceType.host(GUARD), self.drop_guard)
                instance.add_func("acquire", answering(self.acquire))
                instance.add_func("current", answering(self.current))
            with root.add_instance(f"{PACKAGE}/store@{VERSION}") as instance:
                instance.add_func("generation", answering(lambda _: store.generation()))
                instance.add_func("entries", answering(lambda _, *arguments: store.entries(*arguments)))
                instance.add_func("stat", answering(lambda _, *arguments: store.stat(*arguments)))
                instance.add_func("read-text", answering(lambda _, *arguments: store.read_text(*arguments)))
                instance.add_func("read-bytes", answering(lambda _, *arguments: store.read_bytes(*arguments)))
                instance.add_func("commit", answering(self.commit))
                instance.add_func("troubles", answering(lambda _: store.troubles()))
                instance.add_func("put-cache", answering(lambda _, *arguments: store.put_cache(*arguments)))
                instance.add_func("append-cache", answering(lambda _, *arguments: store.append_cache(*arguments)))
                instance.add_func("drop-cache", answering(lambda _, name: store.drop_cache(name)))
            with root.add_instance(f"{PACKAGE}/model@{VERSION}") as instance:
                instance.add_func("describe", lambda _, purpose: lower(NO_MODEL))
                instance.add_func("complete", lambda _, request: no_model())
                instance.add_func("embed", lambda _, texts, role, deadline_ms: no_model())
                instance.add_func("count-tokens", lambda _, vocabulary, texts: lower(estimate(texts)))

    def acquire(self, _, wait_ms, purpose):
        guard = None
        try:
            guard = self.lock.acquire(wait_ms / 1000, purpose)
            self.store.recover(guard)
        except (Refusal, OSError) as error:
            if guard:
                guard.release()
            raise lock_refusal(error) from error
        number = next(self.numbers)
        self.guards[number] = guard
        return wc.ResourceHost.own(number, GUARD)

    def current(self, _):
        try:
            holder = self.lock.current()
        except (Refusal, OSError) as error:
            raise lock_refusal(error) from error
        return {"held": holder is not None, "holder": holder}

    def drop_guard(self, _, number):
        self.guards.pop(number).release()

    def commit(self, caller, borrowed, base, changes, about):
        # A borrowed handle must be used up, or the call traps on its return.
        guard = self.guards[borrowed.to_host(caller).rep]
        # Nothing is kept here of what a commit removes; what other hosts kept goes with one that erases.
        log.debug("commit %s", about["verb"])
        return self.store.commit(guard, base, changes, about["erases"])


def lock_refusal(error):
    """A failure as a `lock-error`, which has fewer cases than a store's."""
    refusal = error if isinstance(error, Refusal) else refusal_for(error)
    return refusal if refusal.case in ("held", "denied") else Refusal("io", str(refusal))


LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}


def instant(nanoseconds):
    return {"seconds": nanoseconds // 10**9, "nanoseconds": nanoseconds % 10**9}


NO_MODEL = {
    "configured": False,
    "model": None,
    "context": None,
    "max-output": None,
    "tools": False,
    "dimensions": None,
}


def no_model():
    # Both cases of the result are records, so it has to say which it is.
    error = {"kind": "unconfigured", "retryable": False, "retry-after-ms": None, "message": "this host has no model"}
    return wc.Variant("err", lower(error))


def estimate(texts):
    """Never too low: no token is shorter than a byte."""
    return {"tokens": [len(text.encode()) for text in texts], "exact": False}


class Memory:
    """The component, compiled. One is enough for any number of sessions."""

    def __init__(self, path):
        config = wasmtime.Config()
        config.epoch_interruption = True
        self.engine = wasmtime.Engine(config)
        self.component = wc.Component.from_file(self.engine, path)
        self.check()
        threading.Thread(target=self.tick, daemon=True).start()
        workspace = self.component.get_export_index(WORKSPACE)
        self.exports = {}
        for resource, name, kind in EXPORTS:
            self.exports[resource, name] = self.component.get_export_index(f"[{kind}]{resource}.{name}", workspace)

    def tick(self):
        while True:
            time.sleep(TICK)
            self.engine.increment_epoch()

    def check(self):
        """Compares names and versions, before anything runs and in words."""
        ours = {PACKAGE: VERSION, "wasi:clocks": WASI, "wasi:random": WASI}
        kind = self.component.type
        for name in kind.imports(self.engine):
            package, _, rest = name.partition("/")
            version = rest.partition("@")[2]
            if package not in ours or version.split(".")[:2] != ours[package].split(".")[:2]:
                raise Unfit(
                    f"the component imports {name}; this host has {ours.get(package, 'nothing of that package')}"
                )
        if WORKSPACE not in kind.exports(self.engine):
            raise Unfit(f"the component does not export {WORKSPACE}; it exports {', '.join(kind.exports(self.engine))}")


EXPORTS = [
    ("session", "open", "static"),
    *(("session", name, "method") for name in ("init", "status", "archive", "search", "get", "browse", "verify")),
    ("verification", "step", "method"),
    ("verification", "report", "method"),
]


class Session:
    """A workspace, opened for one caller. Every session has a wasmtime store of its own."""

    def __init__(self, memory, root, tier="owner", principal=None, time_zone=None, settings=()):
        self.memory, self.root = memory, root
        self.options = {
            "tier": tier,
            "principal": principal,
            "time-zone": time_zone,
            "settings": [{"name": name, "value": value} for name, value in settings],
        }
        self.instance = None
        self.open()

    def open(self):
        self.imports = Imports(self.root)
        linker = wc.Linker(self.memory.engine)
        self.imports.link(linker)
        self.store = wasmtime.Store(self.memory.engine)
        self.store.set_limits(memory_size=MEMORY)
        with self.bounded():
            self.instance = linker.instantiate(self.store, self.memory.component)
        self.handle = self.function("session", "open", self.options)

    def close(self):
        """Ends the session. Its lock, if it held one, is free."""
        self.instance = self.handle = self.store = None
        self.imports.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @contextlib.contextmanager
    def bounded(self):
        """Sets the time limit. After anything that is not an answer the wasmtime store is unusable, and ends here."""
        self.store.set_epoch_deadline(int(DEADLINE / TICK) + 1)
        try:
            yield
        except Exception as error:
            self.close()
            raise Trapped(str(error)) from error

    def function(self, resource, name, *arguments):
        function = self.instance.get_func(self.store, self.memory.exports[resource, name])
        with self.bounded():
            answer = function(self.store, *(lower(argument) for argument in arguments))
        if isinstance(answer, wc.Variant):
            raise Failed(*lift(answer))
        return lift(answer)

    def call(self, name, *arguments):
        """Calls a method of the session, which is opened again if the last call ended it."""
        if self.instance is None:
            self.open()
        return self.function("session", name, self.handle, *arguments)

    def init(self):
        return self.call("init")

    def status(self):
        return self.call("status")

    def archive(self, turns):
        return self.call("archive", [{**NO_TURN, **turn} for turn in turns])

    def search(self, text, top_k=8, **rest):
        return self.call("search", {**NO_QUERY, "text": text, "top-k": top_k, **rest})

    def get(self, target, from_line=None, max_lines=0):
        return self.call("get", target, from_line, max_lines)

    def browse(self, prefix="", cursor=None, most=0):
        return self.call("browse", prefix, cursor, most)

    def verify(self, prefix=""):
        """Everything that is wrong below a prefix, and the report."""
        verification = self.call("verify", prefix)
        findings = []
        while (found := self.function("verification", "step", verification, 1 << 20)) is not None:
            findings += found
        report = self.function("verification", "report", verification)
        verification.drop(self.store)
        return findings, report


NO_TURN = {
    "ordinal": 0,
    "time": None,
    "speaker-id": None,
    "speaker-display": None,
    "speaker-kind": None,
    "principal": None,
    "tier": None,
    "trust": "trusted",
}
NO_QUERY = {
    "scope": "any",
    "speaker": None,
    "path-prefix": None,
    "from": None,
    "to": None,
    "reader": None,
    "explain": False,
    "method": "words",
}
