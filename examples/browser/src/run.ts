// One check: everything that was chosen goes through the verifier, and what came of it can be looked at afterwards.
//
// Knows the worker and the files; must not know how anything is shown.

import type { Finding, ListedRecord, Selection, Summary, ViewedFile, Voice } from "#contract";
import type { Choice } from "./chosen.ts";
import { Client, Refused } from "./client.ts";

/** How far a check is. */
export interface Progress {
  files: number;
  filesInAll: number;
  /** Of the current file, from 0 to 1. */
  part: number;
  bytes: number;
  path: string;
}

/** What a check came to. */
export interface Outcome {
  summary: Summary;
  findings: Finding[];
  /** Files that were looked into, or were to be. */
  filesInAll: number;
  /** Files that are nothing of memory, and were not opened. */
  leftAlone: number;
  /** It was stopped: this is about what had been read by then. */
  stopped: boolean;
  /** Files that were not begun, or not read to their end, because of that. */
  filesMissing: number;
  milliseconds: number;
  /** Bytes of memory that the component has taken. */
  memory: number;
}

/** Text of a record, or of its beginning. */
export interface RecordText {
  text: string;
  /** Bytes of the record that are not in it. */
  more: number;
}

/** Findings taken from the worker at a time. */
const FINDINGS = 1000;

export class Run {
  readonly #client = new Client();
  readonly #files = new Map<string, File>();
  #stopped = false;

  /** Checks everything. */
  async check(choice: Choice, onprogress: (progress: Progress) => void): Promise<Outcome> {
    const since = performance.now();
    const client = this.#client;
    await client.call("open", choice.origin);
    const classes = await client.call("classify", choice.files.map(({ path }) => path));
    const files = choice.files.filter((_, index) => classes[index] !== "other");
    const layouts = new Set(choice.files.filter((_, index) => classes[index] === "old-layout").map(({ path }) => path));

    let done = 0;
    let bytes = 0;
    let whole = 0;
    const tell = (path: string, current = 0, size = 1) => {
      onprogress({ files: done, filesInAll: files.length, part: current / size, bytes: bytes + current, path });
    };
    client.onprogress = (path, current) => tell(path, current, this.#files.get(path)?.size || 1);
    for (const { path, what } of choice.obstacles) await this.#unlessRefused(client.call("setAside", path, what));
    for (const { path, open } of files) {
      if (this.#stopped) break;
      tell(path);
      if (layouts.has(path)) {
        await client.call("check", path, null);
        whole += 1;
      } else {
        let file: File | undefined;
        try {
          file = await open();
        } catch (error) {
          await client.call("breakOff", path, error instanceof Error ? error.message : String(error));
          whole += 1;
        }
        if (file) {
          this.#files.set(path, file);
          const checked = await client.call("check", path, file);
          if (checked === "stopped") break;
          whole += 1;
          bytes += file.size;
        }
      }
      done += 1;
    }

    // What is wrong with topics depends on files that were not read.
    if (!this.#stopped) await client.call("finish");
    const findings: Finding[] = [];
    for (;;) {
      const more = await client.call("takeFindings", FINDINGS);
      if (more.length === 0) break;
      findings.push(...more);
    }
    return {
      summary: await client.call("summary"),
      findings,
      filesInAll: files.length,
      leftAlone: choice.files.length - files.length,
      stopped: this.#stopped,
      filesMissing: files.length - whole,
      milliseconds: performance.now() - since,
      memory: await client.call("memory"),
    };
  }

  /** Ends the check early. What was read by then can be looked at. */
  stop() {
    this.#stopped = true;
    this.#client.stop();
  }

  /** Gives its memory back. */
  close() {
    this.#client.close();
  }

  files(from: number, max: number): Promise<ViewedFile[]> {
    return this.#client.call("files", from, max);
  }

  voices(from: number, max: number): Promise<Voice[]> {
    return this.#client.call("voices", from, max);
  }

  records(of: Selection, from: bigint, max: number): Promise<ListedRecord[]> {
    return this.#client.call("records", of, from, max);
  }

  /**
   * Reads a record from its file, from the byte `from` of it on, at most `max` bytes. Fails, in words, if the file cannot be
   * read any more.
   */
  async text({ record }: ListedRecord, from: number, max: number): Promise<RecordText> {
    const file = this.#files.get(record.path);
    if (file === undefined) throw new Error("its file is not open any more");
    const start = Number(record.offset) + from;
    const length = Number(record.length) - from;
    let bytes: Uint8Array;
    try {
      bytes = new Uint8Array(await file.slice(start, start + Math.min(length, max)).arrayBuffer());
    } catch {
      throw new Error("the file is gone or has changed since it was checked: choose it again");
    }
    // Cut between characters: the decoder keeps the beginning of one that is not all there.
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    const whole = bytes.length >= length;
    try {
      const text = decoder.decode(bytes, { stream: !whole });
      const taken = whole ? length : new TextEncoder().encode(text).length;
      return { text, more: length - taken };
    } catch {
      throw new Error("the file has changed since it was checked: choose it again");
    }
  }

  /** A refusal of one thing is no reason to give the others up. */
  async #unlessRefused(call: Promise<unknown>) {
    try {
      await call;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
    }
  }
}
