// Records of a speaker or of a conversation, with their text, which is read from the file as it is shown.

import type { ListedRecord, Selection } from "#contract";
import { button, byId, element } from "./dom.ts";
import type { Run } from "./run.ts";
import { name, text } from "./visible.ts";
import { badge, bytes, fill, growing, voiceName } from "./views.ts";

/** Records that are shown at a time. */
const ROWS = 30;
/** Bytes of a record that are shown at first, and with each further step. */
const TEXT_BYTES = 4_000;
const MORE_BYTES = 64_000;

/** Shows the records of a selection below a heading. */
export async function recordsView(run: Run, of: Selection, heading: (Node | string)[]) {
  const title = byId("records-heading", HTMLElement);
  title.replaceChildren("Records: ", ...heading);
  byId("records-hint", HTMLElement).hidden = true;
  let from = 0n;
  const list = element("ol", { class: "records" });
  const frame = await growing(list, "Show more records", async () => {
    const records = await run.records(of, from, ROWS);
    from = (records.at(-1)?.number ?? from) + 1n;
    const nodes = await Promise.all(records.map((record) => recordView(run, record)));
    return { nodes, last: records.length < ROWS };
  });
  fill("records", frame);
  title.focus();
}

async function recordView(run: Run, listed: ListedRecord): Promise<HTMLElement> {
  const { record } = listed;
  const { speaker } = record;
  const standing = speaker === undefined ? "unnamed" : speaker.trusted ? "trusted" : "hint";
  const head = element("p", { class: "head" });
  head.append(element("span", { class: "who" }, ...voiceName({ label: record.label, ...(speaker && { speaker }) })));
  head.append(" ", badge(standing));
  if (record.trust === "pending" && speaker === undefined) {
    head.append(" ", element("span", { class: "badge hint" }, "pending"));
  }
  if (record.time !== "") head.append(" ", element("span", { class: "time" }, name(record.time)));

  const details: (Node | string)[] = [name(record.id), ` · line ${record.line} · `, "kind ", name(record.kind)];
  details.push(" · on behalf of ", name(record.principal));
  if (record.tier !== undefined) details.push(` · by authority of ${record.tier}`);
  return element(
    "li",
    { class: "record" },
    head,
    ...(await saidView(run, listed)),
    element("p", { class: "details" }, ...details),
  );
}

/** What was said: the record without its time and label, which stand above it. */
async function saidView(run: Run, listed: ListedRecord): Promise<Node[]> {
  const { record } = listed;
  // Behind the time in brackets and white space comes the label, and behind the label a colon and a space.
  const head = record.time.length + 2;
  const before = new TextEncoder().encode(record.time + record.label).length;
  try {
    const first = await run.text(listed, 0, before + TEXT_BYTES);
    // An older archive may have records without them: those are shown as they are.
    const isHeaded = record.label !== "" && first.text.startsWith(`[${record.time}]`);
    const at = isHeaded ? first.text.indexOf(`${record.label}: `, head) : -1;
    const said = text(at < 0 ? first.text : first.text.slice(at + record.label.length + 2));
    if (first.more === 0) return [said];
    let from = Number(record.length) - first.more;
    const further = button(`Show more of this record (${bytes(first.more)})`, async () => {
      further.disabled = true;
      try {
        const next = await run.text(listed, from, MORE_BYTES);
        said.append(...text(next.text).childNodes);
        from = Number(record.length) - next.more;
        if (next.more === 0) further.remove();
        else further.textContent = `Show more of this record (${bytes(next.more)})`;
      } catch (error) {
        further.replaceWith(unreadable(error));
      }
      further.disabled = false;
    });
    return [said, further];
  } catch (error) {
    return [unreadable(error)];
  }
}

function unreadable(error: unknown) {
  return element("p", { class: "unreadable" }, error instanceof Error ? error.message : String(error));
}
