// Runs the verifier beside the page, so that the page stays responsive.
//
// Reads files piece by piece and hands them to the component. Memory follows the number of records, not the size of files.
// Knows the contract and files; must not know how anything is shown.

import type { Archive } from "#contract";
import { type ImportObject, instantiate } from "#verifier";
import modules from "#core-modules";
import type { Checked, Checking, FromWorker, ToWorker } from "./protocol.ts";

/** Bytes read at a time. Larger pieces are not faster. */
const PIECE_BYTES = 1 << 20;

let archive: Archive | undefined;
let stopped = false;
let memory: WebAssembly.Memory | undefined;

/** Base64 of a gzip stream, as the build wrote it. */
async function unpack(packed: string): Promise<ArrayBuffer> {
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

async function load() {
  const component = await instantiate(
    async (name) => {
      const packed = modules[name];
      if (packed === undefined) throw new Error(`the page was built without ${name}`);
      return WebAssembly.compile(await unpack(packed));
    },
    // What it imports are types, of which nothing is there when it runs.
    {} as ImportObject,
    async (module, imports) => {
      const instance = await WebAssembly.instantiate(module, imports);
      if (instance.exports["memory"] instanceof WebAssembly.Memory) memory = instance.exports["memory"];
      return instance;
    },
  );
  return component.archiveView.Archive;
}

const loaded = load();
// Whoever calls first is told.
loaded.catch(() => {});

function opened(): Archive {
  if (archive === undefined) throw new Error("nothing is open");
  return archive;
}

function say(message: FromWorker) {
  postMessage(message);
}

const checking: { [Name in keyof Checking]: (...args: Parameters<Checking[Name]>) => unknown } = {
  async open(origin) {
    archive = (await loaded).open(origin, []);
  },
  classify: (paths) => opened().classify(paths),
  check,
  setAside: (path, what) => opened().setAside(path, what),
  breakOff: (path, why) => opened().breakOff(path, why),
  finish: () => opened().finish(),
  takeFindings: (max) => opened().takeFindings(max),
  files: (from, max) => opened().files(from, max),
  voices: (from, max) => opened().voices(from, max),
  records: (of, from, max) => opened().records(of, from, max),
  summary: () => opened().summary(),
  memory: () => memory?.buffer.byteLength ?? 0,
};

async function check(path: string, file: File | null): Promise<Checked> {
  const archive = opened();
  const size = file?.size ?? 0;
  const read = (from: number) => {
    const bytes = (file ?? new Blob()).slice(from, from + PIECE_BYTES).arrayBuffer();
    // Its failure is met where it is awaited, which may be later.
    bytes.catch(() => {});
    return bytes;
  };
  let next = read(0);
  for (let from = 0; ; ) {
    let piece: ArrayBuffer;
    try {
      piece = await next;
    } catch (error) {
      archive.breakOff(path, reason(error));
      return "broken-off";
    }
    if (stopped) return "stopped";
    from += piece.byteLength;
    const last = from >= size || piece.byteLength === 0;
    // The next piece is read while this one is checked.
    if (!last) next = read(from);
    archive.pushBytes(path, new Uint8Array(piece), last);
    say({ kind: "progress", path, bytes: from });
    if (last) return "whole";
  }
}

/** Why a browser could not read a file, in words. */
function reason(error: unknown): string {
  const name = error instanceof DOMException ? error.name : "";
  if (name === "NotFoundError") return "it is gone, or has changed since it was chosen: choose it again";
  if (name === "NotReadableError") {
    return "the browser may not read it, or it has changed since it was chosen: choose it again, or change its mode";
  }
  return error instanceof Error ? error.message : String(error);
}

function isProblem(value: unknown): value is { code: string; reason: string; message: string } {
  return typeof value === "object" && value !== null && "code" in value && "reason" in value && "message" in value;
}

addEventListener("message", async (event: MessageEvent<ToWorker>) => {
  const request = event.data;
  if (request.kind === "stop") {
    stopped = true;
    return;
  }
  const { number, method, args } = request;
  try {
    const call = checking[method] as (...args: unknown[]) => unknown;
    say({ kind: "answer", number, value: await call(...args) });
  } catch (error) {
    const payload = error instanceof Error && "payload" in error ? error.payload : undefined;
    if (isProblem(payload)) say({ kind: "refused", number, problem: payload });
    else say({ kind: "fault", number, message: error instanceof Error ? error.message : String(error) });
  }
});
