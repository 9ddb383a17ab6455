// The page: takes what is chosen or dropped, has it checked, and shows what came of it.

import { type Choice, chosenFiles, droppedItems } from "./chosen.ts";
import { button, byId } from "./dom.ts";
import { type Outcome, type Progress, Run } from "./run.ts";
import { recordsView } from "./records.ts";
import { message as sentence, name } from "./visible.ts";
import {
  bytes,
  conversationName,
  conversationsView,
  counted,
  fill,
  findingsView,
  overview,
  voiceName,
  voicesView,
} from "./views.ts";

const RESULTS = ["outcome", "findings", "voices", "conversations", "records"];

let run: Run | undefined;
let ending: AbortController | undefined;

/** Checks what `choose` comes to, unless another check is under way. */
async function begin(choose: (signal: AbortSignal, onfound: (files: number) => void) => Choice | Promise<Choice>) {
  if (ending) return;
  ending = new AbortController();
  const { signal } = ending;
  working(true);
  byId("failure", HTMLElement).textContent = "";
  for (const id of RESULTS) byId(id, HTMLElement).hidden = true;
  run?.close();
  run = undefined;
  try {
    const choice = await choose(signal, (files) => label(`Looking for files: ${counted(files, "file")}`));
    run = new Run();
    signal.addEventListener("abort", () => run?.stop());
    await show(run, await run.check(choice, progress));
  } catch (error) {
    if (!signal.aborted) {
      const message = error instanceof Error ? error.message : String(error);
      byId("failure", HTMLElement).replaceChildren("This did not work: ", sentence(message));
    }
  } finally {
    working(false);
    ending = undefined;
  }
}

async function show(run: Run, outcome: Outcome) {
  overview(outcome);
  await findingsView(outcome.findings);
  await voicesView(run, outcome, (voice) => {
    void recordsView(run, { tag: "voice", val: voice.number }, voiceName(voice));
  });
  await conversationsView(run, (file) => {
    void recordsView(run, { tag: "file", val: file.number }, conversationName(file));
  });
  byId("records-heading", HTMLElement).textContent = "Records";
  byId("records-hint", HTMLElement).hidden = false;
  fill("records", button("Show all, in the order read", () => void recordsView(run, { tag: "all" }, ["all"])));
}

function working(is: boolean) {
  byId("working", HTMLElement).hidden = !is;
  document.body.dataset["state"] = is ? "working" : "idle";
  for (const id of ["folder", "files"]) byId(id, HTMLInputElement).disabled = is;
  byId("progress", HTMLProgressElement).removeAttribute("value");
  byId("working-path", HTMLElement).replaceChildren();
  label("Reading");
}

function label(text: string) {
  byId("working-label", HTMLElement).textContent = text;
}

let shownAt = 0;

function progress({ files, filesInAll, part, bytes: read, path }: Progress) {
  // The eye does not need more.
  if (performance.now() - shownAt < 50) return;
  shownAt = performance.now();
  label(`Checking ${counted(filesInAll, "file")}: ${bytes(read)} read`);
  byId("progress", HTMLProgressElement).max = filesInAll;
  byId("progress", HTMLProgressElement).value = files + part;
  byId("working-path", HTMLElement).replaceChildren(name(path));
}

for (const id of ["folder", "files"]) {
  const input = byId(id, HTMLInputElement);
  input.addEventListener("change", () => {
    const files = [...(input.files ?? [])];
    // The same choice again is a new check.
    input.value = "";
    if (files.length > 0) void begin(() => chosenFiles(files));
  });
}

// Anywhere, so that a file dropped beside a small target does not take the page's place.
addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.dataset["drag"] = "over";
});
addEventListener("dragleave", (event) => {
  if (event.relatedTarget === null) delete document.body.dataset["drag"];
});
addEventListener("drop", (event) => {
  event.preventDefault();
  delete document.body.dataset["drag"];
  const items = event.dataTransfer?.items;
  if (items) void begin((signal, onfound) => droppedItems(items, signal, onfound));
});

byId("stop", HTMLButtonElement).addEventListener("click", () => ending?.abort());
