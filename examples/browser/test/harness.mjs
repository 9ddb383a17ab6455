// What the tests share: a browser whose every connection ends in a trap, the page in it, and archives to feed it.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));
const examples = join(here, "../..");

/** The page that is tested. */
export const PAGE = process.env.RECOLLEX_PAGE ?? join(here, "../dist/recollex-verify.html");
/** The command, whose words the page's are held against. */
const RECOLLEX = process.env.RECOLLEX_BIN ?? join(examples, "../target/debug/recollex");
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** Long enough for a busy machine. */
export const PATIENCE = 60_000;

const ARGUMENTS = [
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-default-apps",
  "--disable-domain-reliability",
];

/** A temporary directory, gone after the test. */
export function temporary(context) {
  const directory = mkdtempSync(join(tmpdir(), "recollex-browser-"));
  context.after(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/**
 * Takes every connection that a browser makes, to whatever host: it is the browser's proxy. Notes the first line of each
 * and answers nothing.
 */
async function trap() {
  const caught = [];
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", (bytes) => {
      caught.push(bytes.toString("latin1").split("\r\n", 1)[0]);
      socket.destroy();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { caught, port: server.address().port, close: () => server.close() };
}

/** Of what the trap caught, what the browser does not do by itself: it calls its maker, whatever page is open. */
export function strangers(caught) {
  const own = /^CONNECT [\w.-]+\.(google|googleapis|gvt1)\.com:443 /;
  return caught.filter((line) => !own.test(line));
}

/** A browser of its own, and what it has tried to reach. */
export async function launch(context) {
  const { caught, port, close } = await trap();
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    chromiumSandbox: false,
    // Without the second one, this machine itself would be reached directly.
    args: [...ARGUMENTS, `--proxy-server=http://127.0.0.1:${port}`, "--proxy-bypass-list=<-loopback>"],
  });
  context.after(async () => {
    await browser.close();
    close();
  });
  return { browser, caught };
}

/** The page, opened from its file. Everything it asks for is in `requests`; nothing may go wrong in it unseen. */
export async function open(browser, { page: file = PAGE, ...options } = {}) {
  const tab = await browser.newContext(options);
  const page = await tab.newPage();
  page.setDefaultTimeout(PATIENCE);
  const requests = [];
  const complaints = [];
  page.on("request", (request) => requests.push(request.url()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("popup", (popup) => complaints.push(`popup: ${popup.url()}`));
  const url = pathToFileURL(file).href;
  await page.goto(url);
  return { page, requests, complaints, url, close: () => tab.close() };
}

/** Nothing but the page itself and its worker was asked for, and nothing was complained of. */
export function assertQuiet({ requests, complaints, url }) {
  assert.deepEqual(complaints, []);
  assert.deepEqual(requests.filter((asked) => asked !== url && !asked.startsWith("blob:null/")), []);
}

/** Drops files or directories on the page, as a person does. */
export async function drop(page, ...paths) {
  const session = await page.context().newCDPSession(page);
  const data = { items: [], files: paths, dragOperationsMask: 1 };
  for (const type of ["dragEnter", "dragOver", "drop"]) {
    await session.send("Input.dispatchDragEvent", { type, x: 200, y: 200, data });
  }
  await session.detach();
}

/** Presses buttons that begin with this label until there is none. */
export function more(page, label) {
  return page.evaluate(async (label) => {
    const next = () => [...document.querySelectorAll("button")].find((button) => button.textContent.startsWith(label));
    for (let button = next(); button; button = next()) {
      button.click();
      await new Promise((done) => setTimeout(done, 5));
    }
  }, label);
}

/** What the page shows of a check, once it is over. */
export async function outcome(page) {
  await page.locator("#records").waitFor();
  await page.locator("body[data-state=idle]").waitFor();
  for (const what of ["findings", "speakers", "conversations"]) await more(page, `Show more ${what}`);
  return page.evaluate(() => {
    const texts = (root, selector) => [...root.querySelectorAll(selector)].map((found) => found.textContent);
    const one = (root, selector) => root.querySelector(selector)?.textContent;
    const all = (selector) => [...document.querySelectorAll(selector)];
    const rows = (selector) => {
      return all(`${selector} .rows li`).map((row) => ({
        name: one(row, "button"),
        figures: one(row, ".figures"),
        badges: texts(row, ".badge"),
        path: one(row, ".path"),
      }));
    };
    return {
      state: document.querySelector("#outcome").dataset.state,
      health: document.querySelector("#outcome").dataset.health,
      verdict: one(document, "#verdict"),
      figures: Object.fromEntries(
        all("#figures div").map((figure) => [
          one(figure, "dt"),
          figure.querySelector("dd").title || one(figure, "dd"),
        ]),
      ),
      findings: all(".finding").map((finding) => ({
        severity: one(finding, ".severity"),
        code: one(finding, "code"),
        path: one(finding, ".place .foreign"),
        line: one(finding, ".line"),
        message: one(finding, ".message"),
        excerpt: one(finding, ".excerpt"),
        subject: one(finding, ".subject .foreign"),
      })),
      trusted: rows(".voices.trusted"),
      hints: rows(".voices.hint"),
      unnamed: rows(".voices.unnamed"),
      conversations: rows("#conversations"),
    };
  });
}

/** What the command says of the same. */
export function verify(...args) {
  let said;
  try {
    said = recollex("verify", "--json", ...args);
  } catch (error) {
    // It exits with 1 where something is wrong.
    if (error.status !== 1) throw error;
    said = error.stdout;
  }
  const document = JSON.parse(said);
  // Views are held against topics of a workspace only: the page takes files one by one.
  document.findings = document.findings.filter(({ code }) => code !== "stale-view");
  return document;
}

export function recollex(...args) {
  return execFileSync(RECOLLEX, args, { encoding: "utf8", maxBuffer: 1 << 30, stdio: ["ignore", "pipe", "pipe"] });
}

/** Holds what the page shows against what the command says: health, figures, every finding with line and excerpt. */
export function assertAgrees(shown, said, path = (path) => path) {
  assert.equal(shown.health, said.health);
  const { counts } = said;
  const number = (value) => value.toLocaleString("en");
  assert.equal(shown.figures["Archives"], number(counts.source_files));
  assert.equal(shown.figures["Records"], number(counts.frames + (counts.legacy_records ?? 0)));
  assert.equal(shown.figures["Topics"], number(counts.topic_files));
  if (counts.blocks !== null) assert.equal(shown.figures["Claims"], number(counts.blocks));
  assert.equal(shown.figures["Read"], `${number(counts.bytes)} ${counts.bytes === 1 ? "byte" : "bytes"}`);
  const line = (finding) => JSON.stringify(Object.entries(finding).filter(([, value]) => value != null).sort());
  const expected = said.findings.map(({ line, ...finding }) => ({
    ...finding,
    path: finding.path && path(finding.path),
    line: line?.toString(),
  }));
  assert.deepEqual(shown.findings.map(line).sort(), expected.map(line).sort());
}

/** The sample conversation, archived by the command; its turns as they went in. */
export function sampleWorkspace(directory) {
  const file = join(examples, "data/conversation.jsonl");
  const workspace = join(directory, "memory");
  recollex("--workspace", workspace, "init");
  recollex("--workspace", workspace, "archive", "--chunk", file);
  const turns = readFileSync(file, "utf8").trim().split("\n").map((line) => JSON.parse(line));
  return { workspace, turns };
}

/** Archives turns of one's own. */
export function archive(workspace, turns) {
  const file = join(dirname(workspace), "turns.jsonl");
  writeFileSync(file, turns.map((turn) => JSON.stringify(turn)).join("\n"));
  recollex("--workspace", workspace, "archive", "--chunk", file);
}

/** Writes a file, and the directories above it. */
export function write(path, content) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}

/** An archive of about that many bytes, written frame by frame: see FORMAT.md. Answers how many records it has. */
export function writeLargeArchive(path, bytes) {
  mkdirSync(dirname(path), { recursive: true });
  const token = (fields) => Buffer.from(JSON.stringify(fields)).toString("base64url");
  const metadata = ["pending", "trusted"].map((trust_state) => {
    return token({ authority_tier: null, principal_id: "unknown", speaker_kind: "human", trust_state, version: 1 });
  });
  const file = openSync(path, "w");
  let written = 0;
  let records = 0;
  let piece = "<!-- openprogram-source-archive:v2 -->\n\n";
  while (written + piece.length < bytes) {
    const id = `bench/thread/m${records}`;
    const anchor = createHash("sha256").update(id).digest("hex").slice(0, 16);
    const who = records % 7;
    const text = `${records}: the keel bolts are bronze, 喷油嘴 is clean, `.repeat(3);
    piece += `<a id="source-${anchor}"></a>\n<!-- source-id:${id} -->\n`;
    if (who > 0) piece += `<!-- speaker-id:u%2D${who} -->\n`;
    piece += `<!-- source-meta:${metadata[who === 1 ? 0 : 1]} -->\n<!-- record-lines:2 -->\n`;
    piece += `[2026-03-04T08:00:00+00:00] ${who > 0 ? `Ada Brandt (u-${who})` : "assistant"}: ${text}\n${text}\n\n`;
    records += 1;
    if (piece.length > 1 << 20) {
      written += writeSync(file, piece);
      piece = "";
    }
  }
  writeSync(file, piece);
  closeSync(file);
  return records;
}
