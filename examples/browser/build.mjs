// Builds the page: one HTML file with everything in it.
//
//     node build.mjs [COMPONENT [DIRECTORY]]
//
// COMPONENT is the verifier as the repository's build leaves it. Into DIRECTORY (dist/) go `recollex-verify.html`, and in
// `verifier/` what jco makes of the component, whose types the sources are checked against.

import { transpile } from "@bytecodealliance/jco-transpile";
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const component = resolve(
  process.argv[2] ??
    join(here, "../../target/guest-wasm/wasm32-unknown-unknown/guest/recollex_verifier.component.wasm"),
);
const out = resolve(process.argv[3] ?? join(here, "dist"));

/** The component as a JavaScript module, and its core modules. */
async function transpiled() {
  await readFile(component).catch(() => {
    throw new Error(`${component} is not there: run \`cargo build\` at the top of the repository, or name it`);
  });
  const { files } = await transpile(component, {
    name: "verifier",
    outDir: "verifier",
    instantiation: "async",
    nodejsCompat: false,
    tlaCompat: false,
    wasiShim: false,
  });
  await rm(join(out, "verifier"), { recursive: true, force: true });
  const core = {};
  for (const [name, content] of Object.entries(files)) {
    const path = join(out, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content);
    if (name.endsWith(".wasm")) core[name.replace(/^verifier\//, "")] = Buffer.from(content);
  }
  return core;
}

/** A bundle as text. */
async function bundle(entry, options) {
  const { outputFiles } = await build({
    entryPoints: [join(here, "src", entry)],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: ["chrome110", "firefox114", "safari16.4"],
    alias: { "#verifier": join(out, "verifier/verifier.js") },
    legalComments: "none",
    ...options,
  });
  return outputFiles[0].text.trim();
}

/** Answers `#core-modules`. */
function coreModules(core) {
  const packed = Object.fromEntries(
    Object.entries(core).map(([name, bytes]) => [name, gzipSync(bytes, { level: 9 }).toString("base64")]),
  );
  return {
    name: "core-modules",
    setup(build) {
      build.onResolve({ filter: /^#core-modules$/ }, ({ path }) => ({ path, namespace: "core-modules" }));
      build.onLoad({ filter: /.*/, namespace: "core-modules" }, () => ({
        contents: JSON.stringify(packed),
        loader: "json",
      }));
    },
  };
}

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** What the page may do: run its own script and style, the component, and one worker. No request to anywhere. */
function policy(script, style) {
  return [
    "default-src 'none'",
    `script-src ${hash(script)} 'wasm-unsafe-eval'`,
    `style-src ${hash(style)}`,
    "worker-src blob:",
    "connect-src 'none'",
    "img-src 'none'",
    "font-src 'none'",
    "media-src 'none'",
    "object-src 'none'",
    "frame-src 'none'",
    "manifest-src 'none'",
    "form-action 'none'",
    "base-uri 'none'",
    // No text becomes HTML or script, whatever the page's own code does.
    "require-trusted-types-for 'script'",
    "trusted-types recollex-worker",
  ].join("; ");
}

const core = await transpiled();
const worker = await bundle("worker.ts", {
  plugins: [coreModules(core)],
  // Where jco would look for core modules if it were not given them.
  define: { "import.meta.url": "undefined" },
});
const script = await bundle("main.ts", { define: { WORKER_SOURCE: JSON.stringify(worker) } });
const style = await bundle("page.css", {});
for (const [what, text] of [["script", script], ["style", style]]) {
  // What an HTML parser would take for the end of an inline element, or for the beginning of another.
  const found = /<\/?(?:script|style)|<!--/i.exec(text);
  if (found) throw new Error(`the ${what} contains ${found[0]}`);
}
const parts = { policy: policy(script, style), script, style };
const page = (await readFile(join(here, "src/page.html"), "utf8")).replace(/\{\{(\w+)\}\}/g, (_, name) => parts[name]);
await writeFile(join(out, "recollex-verify.html"), page);
console.log(`${join(out, "recollex-verify.html")}: ${Math.round(page.length / 1000)} kB`);
