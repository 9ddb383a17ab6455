// What came of a check, shown.
//
// Everything foreign goes through `visible.ts`. Lists come page by page.

import type { Finding, Standing, ViewedFile, Voice } from "#contract";
import { button, byId, element } from "./dom.ts";
import type { Outcome, Run } from "./run.ts";
import { message as sentence, name } from "./visible.ts";

/** Rows that a list shows at a time. */
const ROWS = 50;
const FINDINGS = 100;

export const count = (value: number | bigint) => value.toLocaleString("en");

/** `1 record`, `2 records` */
export const counted = (value: number | bigint, one: string, many = `${one}s`) =>
  `${count(value)} ${Number(value) === 1 ? one : many}`;

export function bytes(value: number | bigint): string {
  const number = Number(value);
  if (number < 1000) return `${number} B`;
  const units = ["kB", "MB", "GB", "TB"];
  const step = Math.min(Math.floor(Math.log10(number) / 3), units.length);
  const scaled = number / 1000 ** step;
  return `${scaled.toLocaleString("en", { maximumSignificantDigits: 3 })} ${units[step - 1]}`;
}

/** Shows a section, with something new in it. */
export function fill(section: string, ...content: (Node | string)[]) {
  byId(section, HTMLElement).hidden = false;
  byId(`${section}-list`, HTMLElement).replaceChildren(...content);
}

/** A list that grows by a button. `next` answers what comes at the end, and whether that was all. */
export async function growing(
  container: HTMLElement,
  more: string,
  next: () => Promise<{ nodes: Node[]; last: boolean }>,
): Promise<HTMLElement> {
  const frame = element("div", {}, container);
  const grow = async () => {
    const { nodes, last } = await next();
    container.append(...nodes);
    if (last) further.remove();
    return nodes[0];
  };
  const further = button(more, async () => {
    further.disabled = true;
    const first = await grow();
    further.disabled = false;
    // Where the new ones begin, a reader goes on.
    if (first instanceof HTMLElement) {
      first.tabIndex = -1;
      first.focus({ preventScroll: true });
    }
  });
  frame.append(further);
  await grow();
  return frame;
}

/** The verdict and the figures. */
export function overview(outcome: Outcome) {
  const { summary, findings, stopped } = outcome;
  const errors = findings.filter(({ severity }) => severity === "error").length;
  const warnings = findings.filter(({ severity }) => severity === "warning").length;
  const section = byId("outcome", HTMLElement);
  const [state, verdict, text] = verdictOf(outcome, errors, warnings);
  section.hidden = false;
  section.dataset["state"] = state;
  section.dataset["health"] = summary.health;
  byId("verdict", HTMLElement).textContent = verdict;
  byId("verdict-text", HTMLElement).textContent = text;

  const { counts } = summary;
  const figures: [string, string, string?][] = [
    ["Archives", count(counts.sourceFiles)],
    ["Records", count(counts.frames + (counts.legacyRecords ?? 0n))],
    ["Topics", count(counts.topicFiles)],
    ...(counts.blocks === undefined ? [] : [["Claims", count(counts.blocks)] satisfies [string, string]]),
    ["Read", bytes(counts.bytes), counted(counts.bytes, "byte")],
    ["Time", `${(outcome.milliseconds / 1000).toLocaleString("en", { maximumFractionDigits: 2 })} s`],
    ["Memory", bytes(outcome.memory)],
  ];
  if (outcome.leftAlone > 0) figures.splice(-3, 0, ["Files left alone", count(outcome.leftAlone)]);
  if (stopped) figures.push(["Files not finished", count(outcome.filesMissing)]);
  byId("figures", HTMLElement).replaceChildren(
    ...figures.map(([label, value, exactly]) =>
      element("div", {}, element("dt", {}, label), element("dd", exactly === undefined ? {} : { title: exactly }, value)),
    ),
  );
  byId("verdict", HTMLElement).focus();
}

function verdictOf(outcome: Outcome, errors: number, warnings: number): [string, string, string] {
  const { health, ok, findingsDropped } = outcome.summary;
  const until = outcome.stopped ? " Only what was read before you stopped was checked." : "";
  if (health === "empty") {
    return ["empty", "Nothing to check", `There is no archive and no topic among these files.${until}`];
  }
  if (!ok) {
    const found = [errors && counted(errors, "error"), warnings && counted(warnings, "warning")].filter(Boolean);
    const dropped = findingsDropped > 0n ? `, and ${count(findingsDropped)} more findings that were only counted` : "";
    return [
      "damaged",
      "Damaged",
      `${found.join(" and ")}${dropped}. What is whole can still be read; the findings say what is not.${until}`,
    ];
  }
  if (outcome.stopped) return ["stopped", "Stopped", `Nothing was wrong so far.${until}`];
  return ["whole", "Whole", "Nothing is wrong with the structure of these files."];
}

/** What was found, worst first. */
export async function findingsView(findings: Finding[]) {
  if (findings.length === 0) return fill("findings", element("p", {}, "None."));
  const order = ["error", "warning", "info"];
  const sorted = [...findings].sort((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
  let shown = 0;
  const list = element("ol", { class: "findings" });
  const frame = await growing(list, "Show more findings", async () => {
    const nodes = sorted.slice(shown, shown + FINDINGS).map(findingView);
    shown += nodes.length;
    return { nodes, last: shown >= sorted.length };
  });
  fill("findings", frame);
}

function findingView(finding: Finding): HTMLElement {
  const { code, severity, path, line, excerpt, subject, message } = finding;
  const place = element("p", { class: "place" });
  if (path !== undefined) place.append(name(path));
  if (line !== undefined) place.append(", line ", element("span", { class: "line" }, String(line)));
  const item = element(
    "li",
    { class: `finding ${severity}` },
    element("p", { class: "what" }, element("span", { class: "severity" }, severity), " ", element("code", {}, code)),
    place,
    element("p", { class: "message" }, sentence(message)),
  );
  if (excerpt !== undefined) item.append(element("pre", { class: "excerpt" }, sentence(excerpt)));
  if (subject !== undefined) item.append(element("p", { class: "subject" }, "About: ", name(subject)));
  return item;
}

const STANDINGS: Record<Standing, [string, string, string]> = {
  trusted: ["Trusted identities", "The program that wrote the archive says who spoke, and vouches for it.", "trusted"],
  hint: ["Hints only", "The program, or only the text of an older record, names a speaker. Nobody has vouched for it: do not build on it.", "hint"],
  unnamed: ["Without a speaker", "Only a label. It is a role, or whatever was written there, and proves nothing.", "label only"],
};

/** How a standing is called beside a name. */
export const badge = (standing: Standing) =>
  element("span", { class: `badge ${standing}` }, STANDINGS[standing][2]);

/** What a voice is called. */
export function voiceName(voice: Pick<Voice, "speaker" | "label">): (Node | string)[] {
  const { speaker, label } = voice;
  if (speaker === undefined) return [name(label)];
  if (speaker.id === "") return [name(speaker.display), " (no id)"];
  if (speaker.display === "") return [name(speaker.id)];
  return [name(speaker.display), " ", element("span", { class: "id" }, name(speaker.id))];
}

/** Who spoke: those who are vouched for apart from the others. */
export async function voicesView(run: Run, outcome: Outcome, show: (voice: Voice) => void) {
  const { trusted, hints, unnamed } = outcome.summary;
  const before: Record<Standing, number> = { trusted: 0, hint: trusted.voices, unnamed: trusted.voices + hints.voices };
  const groups = ([["trusted", trusted], ["hint", hints], ["unnamed", unnamed]] as const).map(
    async ([standing, tally]) => {
      const [title, explanation] = STANDINGS[standing];
      const group = element("section", { class: `voices ${standing}` });
      group.append(element("h3", {}, `${title}: ${count(tally.voices)}`));
      if (tally.voices === 0) return group;
      group.append(element("p", {}, `${explanation} ${counted(tally.records, "record")}.`));
      let shown = 0;
      const list = element("ul", { class: "rows" });
      group.append(
        await growing(list, "Show more speakers", async () => {
          const voices = await run.voices(before[standing] + shown, Math.min(ROWS, tally.voices - shown));
          shown += voices.length;
          return { nodes: voices.map((voice) => voiceRow(voice, show)), last: shown >= tally.voices };
        }),
      );
      return group;
    },
  );
  fill("voices", ...(await Promise.all(groups)));
  if (outcome.summary.recordsDropped > 0n) {
    byId("voices-list", HTMLElement).prepend(tooMany(outcome));
  }
}

function tooMany(outcome: Outcome) {
  return element("p", {}, `${counted(outcome.summary.recordsDropped, "record")} more were checked and are not listed.`);
}

function voiceRow(voice: Voice, show: (voice: Voice) => void): HTMLElement {
  const open = button("", () => show(voice));
  open.append(...voiceName(voice));
  const figures = `${counted(voice.records, "record")} in ${counted(voice.files, "file")}`;
  return element("li", {}, open, " ", element("span", { class: "figures" }, figures));
}

/** Files with records in them. */
export async function conversationsView(run: Run, show: (file: ViewedFile) => void) {
  let from = 0;
  const list = element("ul", { class: "rows" });
  const frame = await growing(list, "Show more conversations", async () => {
    const nodes: Node[] = [];
    let last = false;
    // Files without records are no conversations: look on until there are enough.
    while (nodes.length < ROWS && !last) {
      const files = await run.files(from, ROWS);
      from += files.length;
      last = files.length < ROWS;
      nodes.push(...files.filter(({ records }) => records > 0n).map((file) => conversationRow(file, show)));
    }
    return { nodes, last };
  });
  if (list.childElementCount === 0) frame.replaceChildren(element("p", {}, "None."));
  fill("conversations", frame);
}

/** What a conversation is called. */
export function conversationName(file: ViewedFile): (Node | string)[] {
  if (file.conversation === undefined) return [name(file.path)];
  const [provider, thread] = file.conversation;
  return [name(thread), " ", element("span", { class: "id" }, name(provider))];
}

function conversationRow(file: ViewedFile, show: (file: ViewedFile) => void): HTMLElement {
  const open = button("", () => show(file));
  open.append(...conversationName(file));
  const state = { true: "", false: "damaged", undefined: "not read to its end" }[String(file.clean) as "true"];
  const row = element("li", {}, open, " ", element("span", { class: "figures" }, counted(file.records, "record")));
  if (state) row.append(" ", element("span", { class: "badge damaged" }, state));
  if (file.conversation !== undefined) row.append(element("div", { class: "path" }, name(file.path)));
  return row;
}
