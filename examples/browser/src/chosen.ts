// What somebody chose or dropped, as a list of files with their paths.
//
// Knows the browser's ways to hand over files; must not know what is in them.

import type { Obstacle, Origin } from "#contract";

/** A file that was chosen. */
export interface ChosenFile {
  path: string;
  /** Fails if the browser does not give it. */
  open: () => Promise<File>;
}

/** All that was chosen. */
export interface Choice {
  origin: Origin;
  files: ChosenFile[];
  /** What the browser shows and does not give. */
  obstacles: { path: string; what: Obstacle }[];
}

/** Collects files below directories. */
class Collection {
  readonly files: ChosenFile[] = [];
  readonly obstacles: { path: string; what: Obstacle }[] = [];
  readonly #tops = new Map<string, number>();
  readonly #signal: AbortSignal;
  readonly #onfound: (files: number) => void;

  constructor(signal: AbortSignal, onfound: (files: number) => void) {
    this.#signal = signal;
    this.#onfound = onfound;
  }

  /** A name for something that was chosen by itself; two of one name are told apart. */
  top(name: string): string {
    const before = this.#tops.get(name) ?? 0;
    this.#tops.set(name, before + 1);
    return before === 0 ? name : `${name} (${before + 1})`;
  }

  add(path: string, open: () => Promise<File>) {
    this.files.push({ path, open });
    if (this.files.length % 100 === 0) this.#onfound(this.files.length);
    this.#signal.throwIfAborted();
  }

  choice(): Choice {
    this.#onfound(this.files.length);
    return place(this.files, this.obstacles);
  }
}

/** Chosen with an `input`. Its list is complete: a browser leaves out links and names that it cannot show. */
export function chosenFiles(list: Iterable<File>): Choice {
  const collection = new Collection(new AbortController().signal, () => {});
  for (const file of list) {
    // A directory's files have a path; of a directory there is one only.
    collection.add(file.webkitRelativePath || collection.top(file.name), async () => file);
  }
  return collection.choice();
}

/** Dropped. The items have to be taken at once, in the event; what is below directories comes later. */
export function droppedItems(
  items: DataTransferItemList,
  signal: AbortSignal,
  onfound: (files: number) => void,
): Promise<Choice> {
  const collection = new Collection(signal, onfound);
  // In Chromium only handles work in a page from `file:`, elsewhere there are only entries.
  const taken = [...items]
    .filter((item) => item.kind === "file")
    .map((item) => {
      const name = item.getAsFile()?.name ?? "";
      const entry = item.webkitGetAsEntry();
      const handle = (item as Partial<WithHandle>).getAsFileSystemHandle?.();
      // A handle that is refused is met below.
      handle?.catch(() => {});
      return { name, entry, handle };
    });
  return (async () => {
    for (const { name, entry, handle } of taken) {
      const path = collection.top(name || "unnamed");
      try {
        const found = await handle;
        if (found) await walkHandle(collection, path, found);
        else if (entry) await walkEntry(collection, path, entry);
      } catch (error) {
        signal.throwIfAborted();
        collection.obstacles.push({ path, what: "unreadable" });
      }
    }
    return collection.choice();
  })();
}

/** Part of the File System Access API that TypeScript does not know. */
interface WithHandle {
  getAsFileSystemHandle(): Promise<FileSystemHandle | null>;
}

async function walkHandle(collection: Collection, path: string, handle: FileSystemHandle) {
  if (handle.kind === "file") {
    collection.add(path, () => (handle as FileSystemFileHandle).getFile());
    return;
  }
  const open = [{ path, directory: handle as FileSystemDirectoryHandle }];
  for (let next = open.pop(); next; next = open.pop()) {
    try {
      for await (const [name, child] of next.directory.entries()) {
        // A name that is no text comes as none.
        if (name === "") collection.obstacles.push({ path: `${next.path}/\u{fffd}`, what: "undecodable" });
        else if (child.kind === "file") {
          collection.add(`${next.path}/${name}`, () => (child as FileSystemFileHandle).getFile());
        } else open.push({ path: `${next.path}/${name}`, directory: child as FileSystemDirectoryHandle });
      }
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") throw error;
      collection.obstacles.push({ path: next.path, what: "unreadable" });
    }
  }
}

async function walkEntry(collection: Collection, path: string, entry: FileSystemEntry) {
  if (entry.isFile) {
    collection.add(path, () => new Promise((give, fail) => (entry as FileSystemFileEntry).file(give, fail)));
    return;
  }
  const open = [{ path, directory: entry as FileSystemDirectoryEntry }];
  for (let next = open.pop(); next; next = open.pop()) {
    try {
      const reader = next.directory.createReader();
      // It answers in parts, and with none at the end.
      for (;;) {
        const part = await new Promise<FileSystemEntry[]>((give, fail) => reader.readEntries(give, fail));
        if (part.length === 0) break;
        for (const child of part) {
          const path = `${next.path}/${child.name}`;
          if (child.isDirectory) open.push({ path, directory: child as FileSystemDirectoryEntry });
          else collection.add(path, () => new Promise((give, fail) => (child as FileSystemFileEntry).file(give, fail)));
        }
      }
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") throw error;
      collection.obstacles.push({ path: next.path, what: "unreadable" });
    }
  }
}

/** What the paths are, as the contract tells them apart, and in what order they come. */
function place(files: ChosenFile[], obstacles: { path: string; what: Obstacle }[]): Choice {
  files.sort((a, b) => (a.path < b.path ? -1 : 1));
  const first = files[0]?.path ?? obstacles[0]?.path ?? "";
  const root = first.slice(0, first.indexOf("/") + 1);
  const below = (part: string) => files.some(({ path }) => path.startsWith(root + part));
  const isOne = root !== "" && [...files, ...obstacles].every(({ path }) => path.startsWith(root));
  if (isOne && (below("sources/") || below("topics/"))) {
    // One directory, and a workspace: paths as that workspace has them.
    const inside = <Item extends { path: string }>(item: Item) => ({ ...item, path: item.path.slice(root.length) });
    return { origin: "workspace", files: files.map(inside), obstacles: obstacles.map(inside) };
  }
  return { origin: "directory", files, obstacles };
}
