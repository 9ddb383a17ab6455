// The page's end of the worker.

import type { Problem } from "#contract";
import type { Checking, FromWorker, ToWorker } from "./protocol.ts";

/** The component refused a call. */
export class Refused extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.message);
    this.problem = problem;
  }
}

/** A worker with one archive in it. After anything but a refusal it is of no further use. */
export class Client {
  /** Told with the bytes of the current file so far. */
  onprogress: (path: string, bytes: number) => void = () => {};

  readonly #worker: Worker;
  readonly #waiting = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>();
  #calls = 0;
  #fault: Error | undefined;

  constructor() {
    this.#worker = new Worker(workerUrl());
    this.#worker.addEventListener("message", (event: MessageEvent<FromWorker>) => this.#hear(event.data));
    this.#worker.addEventListener("error", (event) => this.#break(event.message || "the worker did not start"));
  }

  call<Name extends keyof Checking>(
    method: Name,
    ...args: Parameters<Checking[Name]>
  ): Promise<Awaited<ReturnType<Checking[Name]>>> {
    return new Promise((resolve, reject) => {
      if (this.#fault) return reject(this.#fault);
      const number = this.#calls++;
      this.#waiting.set(number, { resolve, reject });
      this.#say({ kind: "call", number, method, args });
    });
  }

  /** Stops the reading of the current file, and of those that come. What was read can still be looked at. */
  stop() {
    this.#say({ kind: "stop" });
  }

  /** Gives the worker and its memory back. */
  close() {
    this.#break("the worker is closed");
  }

  #say(message: ToWorker) {
    this.#worker.postMessage(message);
  }

  #hear(message: FromWorker) {
    if (message.kind === "progress") return this.onprogress(message.path, message.bytes);
    if (message.kind === "fault") return this.#break(message.message);
    const waiting = this.#waiting.get(message.number);
    this.#waiting.delete(message.number);
    if (message.kind === "refused") waiting?.reject(new Refused(message.problem));
    else waiting?.resolve(message.value as never);
  }

  #break(message: string) {
    this.#fault ??= new Error(message);
    this.#worker.terminate();
    for (const { reject } of this.#waiting.values()) reject(this.#fault);
    this.#waiting.clear();
  }
}

let url: string | undefined;

/** The worker's source lies in the page: from `file:` no other file could be loaded. */
function workerUrl(): string {
  url ??= URL.createObjectURL(new Blob([WORKER_SOURCE], { type: "text/javascript" }));
  // The page's policy asks for this where the browser knows it: only this one URL may become a script.
  const policies = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes;
  trusted ??= policies?.createPolicy("recollex-worker", {
    createScriptURL: (asked) => {
      if (asked !== url) throw new TypeError("no script but the worker");
      return asked;
    },
  });
  return trusted?.createScriptURL(url) ?? url;
}

let trusted: TrustedPolicy | undefined;

/** As much of Trusted Types as is used here. */
interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL: (url: string) => string }): TrustedPolicy;
}

interface TrustedPolicy {
  /** Not a string, but taken where a script's URL is wanted. */
  createScriptURL(url: string): string;
}
