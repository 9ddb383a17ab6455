// What the page and its worker say to each other.
//
// A call is a message with a number, and so is its answer. The worker tells its progress in between.

import type {
  FileClass,
  Finding,
  ListedRecord,
  Obstacle,
  Origin,
  Problem,
  Selection,
  Summary,
  ViewedFile,
  Voice,
} from "#contract";

/** What the worker does: the contract's `archive`, with reading. */
export interface Checking {
  /** Begins an archive. Comes first, and once. */
  open(origin: Origin): void;
  classify(paths: string[]): FileClass[];
  /** Reads a file and hands it over, until it ends or `stop` comes. A file without content is none. */
  check(path: string, file: File | null): Promise<Checked>;
  setAside(path: string, what: Obstacle): void;
  breakOff(path: string, why: string): void;
  /** All files came: topics are checked. */
  finish(): void;
  takeFindings(max: number): Finding[];
  files(from: number, max: number): ViewedFile[];
  voices(from: number, max: number): Voice[];
  records(of: Selection, from: bigint, max: number): ListedRecord[];
  summary(): Summary;
  /** Bytes of memory that the component has taken. */
  memory(): number;
}

/** How the reading of a file ended. */
export type Checked = "whole" | "broken-off" | "stopped";

/** The page to the worker. */
export type ToWorker =
  | { kind: "call"; number: number; method: keyof Checking; args: unknown[] }
  /** Stop reading. The file that is being read stays open, so that nothing is said of its end. */
  | { kind: "stop" };

/** The worker to the page. */
export type FromWorker =
  | { kind: "answer"; number: number; value: unknown }
  /** The component refused the call. */
  | { kind: "refused"; number: number; problem: Problem }
  /** Something broke; the worker is of no further use. */
  | { kind: "fault"; number: number; message: string }
  /** Bytes of the current file so far. */
  | { kind: "progress"; path: string; bytes: number };
