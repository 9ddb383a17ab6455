"""A workspace's bytes in a directory, and its lock.

The interfaces `store` and `lock` of `wit/`, in plain Python. Knows files, names and commits; knows nothing of
WebAssembly, and nothing of what the files mean. What each method must do is said in `wit/store.wit` and
`wit/lock.wit`; here is how.

Values are dictionaries with the names of the WIT records; variants are pairs of a name and a payload; a failure is a
`Refusal`, or an `OSError` that `refusal_for` turns into one. Linux only. One object is for one thread; any number of
them, in any number of processes, may be at one directory, the host in Rust included: both keep the same journal and
take the same lock.

This host is made for reading. It walks a whole tree for each page of a listing, waits for a commit under way instead of
reading around it, and refuses to judge what a crash and another program have made of a file together.
"""

import contextlib
import ctypes
import errno
import fcntl
import hashlib
import json
import os
import stat
import struct
import time
import unicodedata

RUNTIME, OLD_RUNTIME = ".scriptorium", ".nativemem"
LOCK = "write.lock"  # in the runtime directory: the file that every program locks
OWN = "recollex"  # in the runtime directory: the journal and what belongs to it
CACHE = ".scriptorium-recollex"
TEMPORARY = ".tmp-"

MAX_PATH, MAX_PART = 4096, 255  # bytes
MAX_CHUNK = 16 << 20  # bytes of one read
PAGE = 4096  # entries of a listing, where the caller leaves it to the host
POLL = 0.05  # seconds between two looks at a lock
GRACE = 0.005  # seconds that even those who do not wait leave to a look at the lock
PATIENCE = 10.0  # seconds a reader waits for a commit under way
FINE_CLOCK, COARSE_CLOCK = 0.02, 2.0  # seconds that may pass between two ticks of a file system's clock


class Refusal(Exception):
    """An error of the contract: a case of `store-error`, `commit-error` or `lock-error`, and its payload."""

    def __init__(self, case, payload=None):
        super().__init__(case if payload is None else f"{case}: {payload}")
        self.case, self.payload = case, payload


def refusal_for(error):
    """The `store-error` that an error of the operating system is."""
    if error.errno == errno.ENOENT:
        return Refusal("not-found")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Refusal("full")
    if error.errno == errno.ELOOP:
        return Refusal("denied", "a symbolic link")
    if error.errno in (
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.ENXIO,
        errno.EISDIR,
    ):
        return Refusal("denied", os.strerror(error.errno))
    return Refusal("io", str(error))


# Names and paths


def fold(name):
    """What two names have in common if some file system may take them for one."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def hidden(area, first):
    """Whether a path that begins with this part is no part of the area."""
    name = fold(first)
    if area == "tree":
        return name == ".git" or any(name == own or name.startswith(own + "-") for own in (RUNTIME, OLD_RUNTIME))
    return name in (OWN, LOCK) if area == "runtime" else name.startswith(TEMPORARY)


def split(area, path):
    """The parts of a path that may be used in an area."""
    parts = path.split("/")
    if len(path.encode()) > MAX_PATH or any(len(part.encode()) > MAX_PART for part in parts):
        raise Refusal("denied", "the path is too long")
    if "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise Refusal("denied", f"not a path inside the workspace: {path!r}")
    if hidden(area, parts[0]):
        raise Refusal("denied", f"{parts[0]!r} is internal")
    return parts


def check_cursor(area, cursor):
    """A cursor need not be a path that exists, or could; but it leads nowhere else."""
    parts = cursor.removesuffix("/").split("/")
    if cursor and ("\0" in cursor or any(part in ("", ".", "..") for part in parts) or hidden(area, parts[0])):
        raise Refusal("denied", f"not a place inside the workspace: {cursor!r}")


# System calls, one name at a time, so that none follows a symbolic link. Names are bytes: Python's idea of the encoding
# of file names is the locale's.

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def look(directory, name):
    """What a name is, without following it; none if it is nothing."""
    try:
        raw = name if isinstance(name, bytes) else name.encode()
        return os.stat(raw, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def step_into(directory, name, create=False):
    """Opens a directory in a directory. `NotADirectoryError` for a file, a `Refusal` for a link."""
    raw = name.encode()
    if create:
        with contextlib.suppress(FileExistsError):
            os.mkdir(raw, 0o700, dir_fd=directory)
            os.fsync(directory)
    try:
        return os.open(raw, DIRECTORY, dir_fd=directory)
    except OSError as error:
        found = look(directory, name) if error.errno in (errno.ENOTDIR, errno.ELOOP) else None
        if found is None:
            raise
        if stat.S_ISLNK(found.st_mode):
            raise Refusal("denied", f"{name!r} is a symbolic link") from None
        raise NotADirectoryError(errno.ENOTDIR, f"{name!r} is not a directory") from None


@contextlib.contextmanager
def opened(directory, name, flags):
    descriptor = os.open(name.encode(), flags | FILE, 0o600, dir_fd=directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def write_all(descriptor, data, offset=0):
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written


def read_all(descriptor, offset, length):
    pieces = []
    while length > 0 and (piece := os.pread(descriptor, length, offset)):
        pieces.append(piece)
        offset, length = offset + len(piece), length - len(piece)
    return b"".join(pieces)


def create(directory, name, data):
    """Writes a new file and syncs it."""
    with opened(directory, name, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as descriptor:
        write_all(descriptor, data)
        os.fsync(descriptor)


def reserve(descriptor, length):
    """Makes room in a file, which does not get longer."""
    libc = ctypes.CDLL(None, use_errno=True)
    keep_size = 1
    arguments = (ctypes.c_int(descriptor), ctypes.c_int(keep_size), ctypes.c_int64(0), ctypes.c_int64(length))
    if libc.fallocate(*arguments) and ctypes.get_errno() in (errno.ENOSPC, errno.EDQUOT):
        raise Refusal("full")


def set_aside(own, entries):
    """Sets room aside for what is added to files, so that a full disk refuses the commit before it is made. In a file of
    its own: in those that are added to, it would change their times even if the commit did not happen."""
    block = 4096
    texts = [step["text"].encode() for entry in entries for action, step in entry["step"].items() if action == "append"]
    if texts:
        with opened(own, ROOM, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as descriptor:
            reserve(descriptor, sum(-(-len(text) // block) * block for text in texts))


def unlink(directory, name):
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name.encode(), dir_fd=directory)


def rename(source, name, target, new_name):
    os.rename(name.encode(), new_name.encode(), src_dir_fd=source, dst_dir_fd=target)


# Versions of files


def stamp_of(status):
    """Inode and change time differ even where length and modification time were kept or put back. The inode comes last, as
    the contract asks for: it stays while a file is added to."""
    modified, changed = divmod(status.st_mtime_ns, 10**9), divmod(status.st_ctime_ns, 10**9)
    window = FINE_CLOCK if modified[1] or changed[1] else COARSE_CLOCK
    return {
        "size": status.st_size,
        "token": f"{modified[0]:x}.{modified[1]:x}-{changed[0]:x}.{changed[1]:x}-{status.st_ino:x}",
        "racy": max(status.st_mtime, status.st_ctime) + window > time.time(),
    }


def same_version(one, other):
    return (one["size"], one["token"]) == (other["size"], other["token"])


def version_of(status):
    """A version as the journal has it: it survives a copy of the workspace."""
    seconds, nanoseconds = divmod(status.st_mtime_ns, 10**9)
    return {"size": status.st_size, "modified": {"seconds": seconds, "nanoseconds": nanoseconds}}


def kind_of(status):
    if stat.S_ISREG(status.st_mode):
        return "file"
    return "symlink" if stat.S_ISLNK(status.st_mode) else "special"


# The journal: one file with the generation and what the last commit does. `host/src/store/journal.rs` says how it is
# laid out and why. It is pending while it has a body, and settled once it is cut to its header.

HEADER = struct.Struct("<16sIIQQ32s")
HEADER_LENGTH = HEADER.size + 8
ROOM = "room"  # holds the room that additions will take
MAGIC, JOURNAL_VERSION, TAIL = b"recollex-journal", 1, 4096
ERASES = 1  # the flag of a commit of which nothing that it removes may be kept
SETTLE = "run `recollex doctor --fix` on this workspace"
HALF_INSTALL = ".scriptorium-block-backup"  # what OpenProgram moves files to while it installs new ones
COMPARE = "compare, take what is wanted, and remove the rest"


def encode_journal(generation, entries, erases=False):
    body = json.dumps(entries, ensure_ascii=False).encode() if entries else b""
    flags = ERASES if erases else 0
    header = HEADER.pack(MAGIC, JOURNAL_VERSION, flags, generation, len(body), hashlib.sha256(body).digest())
    return header + hashlib.sha256(header).digest()[:8] + body


def decode_journal(data):
    """The generation, the entries of a pending commit, and whether it erases."""
    header, total = data[: HEADER.size], data[HEADER.size : HEADER_LENGTH]
    if len(data) < HEADER_LENGTH or not header.startswith(MAGIC) or hashlib.sha256(header).digest()[:8] != total:
        raise Refusal("io", f"the journal is damaged: {SETTLE}")
    _, version, flags, generation, length, digest = HEADER.unpack(header)
    body = data[HEADER_LENGTH:]
    if not body:
        return generation, [], False
    if version != JOURNAL_VERSION or flags & ~ERASES:
        raise Refusal("denied", f"a commit of a newer version (journal {version}) is unfinished: use that version once")
    if len(body) != length or hashlib.sha256(body).digest() != digest:
        raise Refusal("io", f"the journal is damaged: {SETTLE}")
    return generation, json.loads(body), bool(flags & ERASES)


def tail_digest(descriptor, length):
    """What proves that a file is still the one that was added to."""
    start = max(0, length - TAIL)
    return hashlib.sha256(read_all(descriptor, start, length - start)).hexdigest()


class Directory:
    """A workspace's root, which need not exist yet, and the ways from it to a path."""

    def __init__(self, root):
        self.root = os.path.abspath(root)

    def open_root(self, create=False):
        if create:
            os.makedirs(self.root, 0o700, exist_ok=True)
        return os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def runtime(self):
        old = os.path.isdir(os.path.join(self.root, OLD_RUNTIME))
        return OLD_RUNTIME if old else RUNTIME

    @contextlib.contextmanager
    def directory(self, parts, create=False):
        """The directory that parts lead to from the root, a step at a time."""
        here = self.open_root(create)
        try:
            for part in parts:
                here, above = step_into(here, part, create), here
                os.close(above)
            yield here
        finally:
            os.close(here)

    def base(self, area):
        return {"tree": [], "runtime": [self.runtime()], "cache": [CACHE]}[area]

    @contextlib.contextmanager
    def parent(self, area, path, create=False):
        """The directory that holds a path, and the path's last part."""
        *above, name = split(area, path)
        with self.directory(self.base(area) + above, create) as here:
            yield here, name

    def find(self, area, path):
        """What is at a path; none for nothing, also where a part above it is a file."""
        try:
            with self.parent(area, path) as (here, name):
                return look(here, name)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def own(self, create=False):
        """The directory of the journal."""
        return self.directory([self.runtime(), OWN], create)


class FileLock(Directory):
    """`flock` on the file that other programs lock too. The kernel frees it with its holder."""

    def acquire(self, wait, purpose):
        """Waits at most `wait` seconds."""
        until = time.monotonic() + max(wait, GRACE)
        while True:
            with self.directory([self.runtime()], create=True) as here:
                guard = Guard(self, os.open(LOCK.encode(), os.O_RDWR | os.O_CREAT | FILE, 0o600, dir_fd=here))
            try:
                fcntl.flock(guard.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Others lock what has the name now; it may be another file since this one was opened.
                if guard.is_of(self.find_lock()):
                    self.note({"process": os.getpid(), "purpose": purpose.encode()[:64].decode(errors="ignore")})
                    return guard
            except BlockingIOError:
                pass
            except BaseException:
                os.close(guard.descriptor)
                raise
            os.close(guard.descriptor)
            if time.monotonic() >= until:
                raise Refusal("held", self.current())
            time.sleep(min(POLL, max(wait, GRACE)))

    def current(self):
        """Shares the lock for a moment to see whether it is free; whoever wants it just then looks twice."""
        try:
            with self.directory([self.runtime()]) as here, opened(here, LOCK, os.O_RDONLY) as descriptor:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return None
        except FileNotFoundError:
            return None
        except BlockingIOError:
            return self.noted()

    def note(self, holder):
        """Says who holds the lock. A hint, which nobody believes once the lock is free."""
        data = json.dumps(holder, ensure_ascii=False).encode()
        with contextlib.suppress(OSError, Refusal), self.own(create=True) as own:
            unlink(own, "holder.new")
            create(own, "holder.new", data)
            rename(own, "holder.new", own, "holder")

    def noted(self):
        try:
            with self.own() as own, opened(own, "holder", os.O_RDONLY) as descriptor:
                holder = json.loads(read_all(descriptor, 0, 1024))
            os.kill(holder["process"], 0)
        except PermissionError:
            pass  # It lives, as another user.
        except (OSError, Refusal, ValueError, KeyError):
            return {"process": None, "purpose": None}
        return holder

    def find_lock(self):
        try:
            with self.directory([self.runtime()]) as here:
                return look(here, LOCK)
        except OSError:
            return None


class Guard:
    """The lock, held."""

    def __init__(self, lock, descriptor):
        self.lock, self.descriptor = lock, descriptor

    def release(self):
        try:
            with contextlib.suppress(OSError, Refusal), self.lock.own() as own:
                unlink(own, "holder")
        finally:
            os.close(self.descriptor)

    def is_of(self, found):
        """Whether it is this file that is locked, and not one that had its name before."""
        return found is not None and os.path.samestat(os.fstat(self.descriptor), found)


class DirectoryStore(Directory):
    """The interface `store`."""

    # Reading

    def journal(self):
        """The generation, what a commit has still to do, and whether it erases."""
        try:
            with self.own() as own, opened(own, "journal", os.O_RDONLY) as descriptor:
                data = read_all(descriptor, 0, os.fstat(descriptor).st_size)
                # Read while it was being cut, it may end anywhere.
                is_cut = os.fstat(descriptor).st_size == HEADER_LENGTH
                return decode_journal(data[:HEADER_LENGTH] if is_cut else data)
        except FileNotFoundError:
            return 0, [], False

    def settled(self):
        """The generation when no commit is under way: one that a crash left is completed, one at work is waited for."""
        until = time.monotonic() + PATIENCE
        while True:
            generation, entries, _ = self.journal()
            if not entries:
                return generation
            try:
                guard = FileLock(self.root).acquire(POLL, "recovery")
            except Refusal as refusal:
                if refusal.case != "held":
                    raise
                if time.monotonic() > until:
                    raise Refusal("io", "another process does not finish its commit") from None
                continue
            try:
                self.recover(guard)
            finally:
                guard.release()

    def reading(self, read):
        """Reads, and reads again if a commit came between."""
        while True:
            generation = self.settled()
            answer = read()
            if self.journal() == (generation, [], False):
                return generation, answer

    def generation(self):
        return self.settled()

    def entries(self, area, prefix, cursor, most):
        start = split(area, prefix) if prefix else []
        check_cursor(area, cursor or "")
        generation, found = self.reading(lambda: self.walk(area, start))
        found = sorted(
            (entry for entry in found if cursor is None or entry["path"] > cursor), key=lambda entry: entry["path"]
        )
        page = found[: most or PAGE]
        return {
            "entries": page,
            "next": page[-1]["path"] if len(page) < len(found) else None,
            "generation": generation,
        }

    def walk(self, area, start):
        found, ahead = [], [(start, None)]
        while ahead:
            above, itself = ahead.pop()
            try:
                with self.directory(self.base(area) + above) as here:
                    names = [(raw, look(here, raw)) for raw in map(os.fsencode, os.listdir(here))]
            except (FileNotFoundError, NotADirectoryError):
                continue  # Gone since it was listed, or never there.
            except PermissionError:
                if itself is None:
                    raise
                found.append({"path": "/".join(above), "kind": "unreadable", "stamp": stamp_of(itself)})
                continue
            for raw, status in names:
                name = raw.decode(errors="replace")
                path = "/".join([*above, name])
                if status is None or (not above and hidden(area, name)):
                    continue
                is_text = name.encode() == raw
                if is_text and stat.S_ISDIR(status.st_mode) and len(path.encode()) < MAX_PATH - 1:
                    ahead.append(([*above, name], status))
                else:
                    kind = kind_of(status) if is_text else "undecodable"
                    found.append({"path": path, "kind": kind, "stamp": stamp_of(status)})
        return found

    def stat(self, area, path):
        _, status = self.reading(lambda: self.find(area, path))
        if status is None or stat.S_ISDIR(status.st_mode):
            raise Refusal("not-found")
        return {"path": path, "kind": kind_of(status), "stamp": stamp_of(status)}

    def read(self, area, path, at, offset, length):
        """Bytes, and the version they are of."""

        def read():
            with self.parent(area, path) as (here, name), opened(here, name, os.O_RDONLY) as descriptor:
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode):
                    raise Refusal("denied", "not a regular file")
                stamp = stamp_of(status)
                data = read_all(descriptor, offset, length)
                return data, stamp, same_version(stamp, stamp_of(os.fstat(descriptor)))

        while True:
            try:
                _, (data, stamp, steady) = self.reading(read)
            except NotADirectoryError:
                raise Refusal("not-found") from None
            if at is not None and not (steady and same_version(stamp, at)):
                raise Refusal("changed")
            if steady:
                return data, stamp

    def read_text(self, area, path, at, offset, most):
        most = min(most, MAX_CHUNK)
        data, stamp = self.read(area, path, at, offset, max(most, 4))
        text = whole_characters(data[:most])
        if not text and data:
            # Room for no whole character, or none there.
            text = next((text for end in range(1, 5) if (text := whole_characters(data[:end]))), "")
            if not text:
                raise Refusal("not-text", offset)
        following = offset + len(text.encode())
        return {"text": text, "next": following, "eof": following >= stamp["size"], "stamp": stamp}

    def read_bytes(self, area, path, at, offset, most):
        data, stamp = self.read(area, path, at, offset, min(most, MAX_CHUNK))
        return {"data": data, "eof": offset + len(data) >= stamp["size"], "stamp": stamp}

    # Writing

    def troubles(self):
        """What a reader should be told. A damaged journal is not among it: with one, nothing can be read here."""
        found = []
        if os.path.lexists(os.path.join(self.root, HALF_INSTALL)) and FileLock(self.root).current() is None:
            message = f"another program stopped while it was installing new files: start it once, or {COMPARE}"
            found.append({"code": "half-install", "path": HALF_INSTALL, "message": message})
        if self.beside("kept"):
            message = f"changes that another program came before: {COMPARE}"
            found.append({"code": "recovery-conflict", "path": f"{self.runtime()}/{OWN}/kept", "message": message})
        return found

    def commit(self, guard, base, changes, erases=False):
        if not guard.is_of(FileLock(self.root).find_lock()):
            raise Refusal("lock-lost")
        with failing_at(""):
            self.recover(guard)
            generation, _, _ = self.journal()
        if generation != base:
            raise Refusal("stale", generation)
        with failing_at(""):
            if erases and any(not name.endswith(".json") for name in self.beside("kept")):
                raise Refusal("denied", f"what was kept aside may hold what is to be erased: {COMPARE}, and repeat")
        paths = Paths(self)
        plans = [(change, self.check(change, paths)) for change in changes]
        with failing_at(""), self.own(create=True) as own:
            try:
                entries = [self.prepare(own, f"stage-{base + 1}-{number}", *plan) for number, plan in enumerate(plans)]
                entries = [entry for entry in entries if entry]
                set_aside(own, entries)
                if entries:
                    create(own, "journal.new", encode_journal(base + 1, entries, erases))
                    rename(own, "journal.new", own, "journal")
            except Exception:
                self.sweep(own)
                raise
            # From here on the commit is made: whatever happens, somebody completes it.
            os.fsync(own)
            self.recover(guard)
            stamps = []
            for change in changes:
                action, payload = change["edit"]
                status = self.find(change["area"], payload if action == "move-to" else change["path"])
                stamps.append(status and stamp_of(status))
        return {"generation": base + 1 if entries else base, "stamps": stamps}

    def check(self, change, paths):
        """Checks one change against what is there, which it returns."""
        area, path, (action, payload) = change["area"], change["path"], change["edit"]
        expectation, expected = change["expect"]
        with failing_at(path):
            if area == "cache":
                raise Refusal("denied", "the cache is no part of commits")
            before = paths.claim(area, path)
            if before is None and action in ("put", "append"):
                paths.create(area, path)
            is_same = expectation == "same" and before is not None and same_version(stamp_of(before), expected)
            if not (expectation == "any" or is_same or (expectation == "absent" and before is None)):
                raise Refusal("changed", path)
            if before is None and action not in ("put", "append", "keep"):
                raise Refusal("not-found")
            if action == "append" and payload["length"] != (before.st_size if before else 0):
                raise Refusal("changed", path)
        if action == "move-to":
            with failing_at(payload):
                if paths.claim(area, payload) is not None:
                    raise Refusal("changed", payload)
                paths.create(area, payload)
        return before

    def prepare(self, own, stage, change, before):
        """Puts aside what a change writes, and says what is to be done; none: nothing."""
        area, path, (action, payload) = change["area"], change["path"], change["edit"]
        if action == "keep":
            return None
        version = before and version_of(before)
        with failing_at(path):
            if action == "delete":
                step = {"delete": {"before": version}}
            elif action == "move-to":
                step = {"move": {"to": payload, "before": version}}
            # What has another name elsewhere must not change there: it is written anew.
            elif action == "append" and before and before.st_size and before.st_nlink == 1:
                if not payload["text"]:
                    return None
                with self.parent(area, path) as (here, name), opened(here, name, os.O_RDONLY) as descriptor:
                    tail = tail_digest(descriptor, before.st_size)
                step = {"append": {"length": before.st_size, "tail": tail, "text": payload["text"]}}
            else:
                old = b""
                if before and action != "put":
                    old, _ = self.read(area, path, stamp_of(before), 0, before.st_size)
                if action == "splice":
                    data = spliced(path, old, payload)
                else:
                    data = old + (payload if action == "put" else payload["text"]).encode()
                create(own, stage, data)
                step = {"replace": {"stage": stage, "size": len(data), "before": version}}
            return {"area": area, "path": path, "step": step}

    def recover(self, guard):
        """Does what the journal says is still to be done. Needs the lock."""
        if not guard.is_of(FileLock(self.root).find_lock()):
            raise Refusal("denied", "the lock is not held")
        _, entries, erases = self.journal()
        if entries:
            with self.own() as own:
                unlink(own, ROOM)
        for entry in entries:
            self.apply(entry)
        if erases:
            self.forget()
        with contextlib.suppress(FileNotFoundError), self.own() as own:
            if entries:
                with opened(own, "journal", os.O_RDWR) as descriptor:
                    os.ftruncate(descriptor, HEADER_LENGTH)
            self.sweep(own)

    def forget(self):
        """Removes what other hosts keep to take commits back: none of it may outlive a commit that erases."""
        with contextlib.suppress(FileNotFoundError), self.directory([self.runtime(), OWN, "undo"]) as here:
            for name in os.listdir(here):
                unlink(here, name)
            os.fsync(here)

    def beside(self, directory):
        """The names in a directory of the store's own."""
        with contextlib.suppress(FileNotFoundError), self.directory([self.runtime(), OWN, directory]) as here:
            return os.listdir(here)
        return []

    def sweep(self, own):
        """Removes what belongs to no commit."""
        for name in os.listdir(own):
            if name in ("journal.new", ROOM) or name.startswith("stage-"):
                unlink(own, name)

    def apply(self, entry):
        """Brings one path from what the commit found to what it makes. Doing it twice is doing it once."""
        area, path = entry["area"], entry["path"]
        ((action, step),) = entry["step"].items()
        found = self.find(area, path)
        is_as_before = (found and stat.S_ISREG(found.st_mode) and version_of(found)) == step.get("before")
        conflict = Refusal("io", f"{path} was changed after a crash: {SETTLE}")
        if action == "replace":
            with self.own() as own, self.parent(area, path, create=True) as (here, name):
                staged = look(own, step["stage"])
                if staged is None or (found and os.path.samestat(found, staged)):
                    return  # It is in place.
                if not is_as_before:
                    raise conflict
                rename(own, step["stage"], here, name)
                os.fsync(here)
        elif action == "append":
            text, length = step["text"].encode(), step["length"]
            with self.parent(area, path) as (here, name), opened(here, name, os.O_RDWR) as descriptor:
                there = read_all(descriptor, length, len(text))
                if there != text:
                    # A crash may have left a part, or zeros where the length reached the medium and the text did not.
                    is_torn = all(byte in (ours, 0) for byte, ours in zip(there, text, strict=False))
                    is_end = os.fstat(descriptor).st_size <= length + len(text)
                    if not (is_torn and is_end and tail_digest(descriptor, length) == step["tail"]):
                        raise conflict
                    write_all(descriptor, text, length)
                os.fsync(descriptor)
        elif action == "delete" and found:
            if not is_as_before:
                raise conflict
            with self.parent(area, path) as (here, name):
                unlink(here, name)
                os.fsync(here)
        elif action == "move":
            target = self.find(area, step["to"])
            if found is None and target is not None:
                return
            if not is_as_before or target is not None:
                raise conflict
            with (
                self.parent(area, path) as (here, name),
                self.parent(area, step["to"], create=True) as (there, new_name),
            ):
                rename(here, name, there, new_name)
                os.fsync(here)
                os.fsync(there)

    # Caches. Written without the lock, and not synced: who reads them checks them.

    def put_cache(self, name, data):
        temporary = f"{TEMPORARY}{os.getpid()}-{os.urandom(4).hex()}"
        split("cache", name)
        new = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with self.cache([]) as cache, opened(cache, temporary, new) as descriptor:
            try:
                write_all(descriptor, data)
                with self.parent("cache", name, create=True) as (here, last):
                    rename(cache, temporary, here, last)
            except BaseException:
                unlink(cache, temporary)
                raise
            return stamp_of(os.fstat(descriptor))

    def append_cache(self, name, length, data):
        *above, last = split("cache", name)
        with self.cache(above) as here:
            flags = os.O_RDWR | (os.O_CREAT if length == 0 else 0)
            with opened(here, last, flags) as descriptor:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise Refusal("changed") from None
                if os.fstat(descriptor).st_size != length:
                    raise Refusal("changed")
                write_all(descriptor, data, length)
                return stamp_of(os.fstat(descriptor))

    def drop_cache(self, name):
        with contextlib.suppress(FileNotFoundError), self.parent("cache", name) as (here, last):
            unlink(here, last)

    def cache(self, parts):
        """A directory of the cache. It is made where it is missing; a workspace is not."""
        if not os.path.isdir(self.root):
            raise Refusal("denied", "there is no workspace yet")
        return self.directory([CACHE, *parts], create=True)


class Paths:
    """The paths of one commit: none twice, none both file and directory, no two that are one name to some medium."""

    def __init__(self, store):
        self.store = store
        self.claimed, self.created = set(), {}

    def claim(self, area, path):
        """Takes a path for a change, and says what is there: a regular file or nothing."""
        parts = split(area, path)
        if (area, path) in self.claimed:
            raise Refusal("denied", "the commit names this path twice")
        self.claimed.add((area, path))
        for end in range(1, len(parts) + 1):
            prefix = "/".join(parts[:end])
            found = self.store.find(area, prefix)
            if found is None:
                return None
            if stat.S_ISLNK(found.st_mode):
                raise Refusal("denied", f"{prefix} is a symbolic link")
            if stat.S_ISDIR(found.st_mode) == (end == len(parts)):
                raise Refusal("wrong-kind", prefix)
        if not stat.S_ISREG(found.st_mode):
            raise Refusal("denied", "not a regular file")
        return found

    def create(self, area, path):
        """Takes a path that will come into being, with the directories above it."""
        parts = split(area, path)
        for end in range(1, len(parts) + 1):
            prefix, is_file = parts[:end], end == len(parts)
            twin = self.twin(area, prefix)
            other, other_is_file = self.created.setdefault((area, *map(fold, prefix)), (twin or prefix, is_file))
            if other != prefix:
                raise Refusal("collision", ("/".join(prefix), "/".join(other)))
            if is_file != other_is_file:
                raise Refusal("wrong-kind", "/".join(prefix))

    def twin(self, area, prefix):
        """What exists beside a new name and differs from it in spelling only."""
        *above, name = prefix
        try:
            with self.store.directory(self.store.base(area) + above) as here:
                names = [os.fsencode(other).decode(errors="replace") for other in os.listdir(here)]
        except (FileNotFoundError, NotADirectoryError):
            return None
        if name in names:
            return None
        return next(([*above, other] for other in names if fold(other) == fold(name)), None)


def failed(path, refusal):
    """A `store-error` as a `commit-error`."""
    return Refusal("failed", (path, refusal))


@contextlib.contextmanager
def failing_at(path):
    """Turns what fails in a commit into a `commit-error` that names the path."""
    try:
        yield
    except OSError as error:
        raise failed(path, refusal_for(error)) from error
    except Refusal as refusal:
        if refusal.case in ("stale", "collision", "wrong-kind", "failed") or (
            refusal.case == "changed" and refusal.payload
        ):
            raise
        raise failed(path, refusal) from refusal


def whole_characters(data):
    """The text at the beginning of `data`, as far as it is text."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        return data[: error.start].decode()


def spliced(path, old, splices):
    pieces, at = [], 0
    for splice in splices:
        start, end = splice["offset"], splice["offset"] + splice["remove"]
        if start < at:
            raise Refusal("denied", "the splices overlap or do not ascend")
        if end > len(old):
            raise Refusal("changed", path)
        for border in (start, end):
            if 0x80 <= next(iter(old[border : border + 1]), 0) <= 0xBF:
                raise Refusal("not-text", border)
        pieces += [old[at:start], splice["insert"].encode()]
        at = end
    return b"".join([*pieces, old[at:]])
