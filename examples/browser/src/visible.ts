// Text from archives, made safe to look at.
//
// It is only ever set as text, never as HTML. What remains are characters that a reader does not see, or that move others:
// marks that turn the direction, controls, invisible ones. They are shown by their code. Each text stands in an element of
// its own, isolated, so that its direction ends where it ends.

import { element } from "./dom.ts";

/** Characters that are shown by their code: controls, formats, separators, those for private use. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]/gu;
/** The same, and every space but the usual one: in a name they are there to deceive. */
const HIDDEN_IN_NAMES = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000\u115f\u1160\u3164\uffa0]/gu;
/** What a text of several lines may contain: ends of lines, tabs, and the joiners of emoji and of Indic and Arabic scripts. */
const ALLOWED_IN_TEXTS = new Set(["\n", "\t", "\u200c", "\u200d"]);

/** Characters of a name that are shown. */
const NAME_LENGTH = 200;
const MESSAGE_LENGTH = 4000;

/** A sentence about an archive, which may quote from it. */
export const message = (text: string) => name(text, MESSAGE_LENGTH);

/** A name, id, path or label: one line, cut if it is very long. */
export function name(text: string, length = NAME_LENGTH): HTMLElement {
  const characters = [...text.slice(0, 2 * length)];
  const cut = characters.length > length || text.length > 2 * length;
  const shown = cut ? characters.slice(0, length).join("") : text;
  return element("bdi", { class: "foreign" }, ...marked(shown, HIDDEN_IN_NAMES, () => false), cut ? "…" : "");
}

/** A text of any number of lines. Each line has its own direction. */
export function text(text: string): HTMLElement {
  const allowed = (character: string, next: string | undefined) =>
    ALLOWED_IN_TEXTS.has(character) || (character === "\r" && next === "\n");
  return element("div", { class: "foreign said", dir: "auto" }, ...marked(text, HIDDEN, allowed));
}

function* marked(
  text: string,
  hidden: RegExp,
  allowed: (character: string, next: string | undefined) => boolean,
): Iterable<Node | string> {
  let from = 0;
  for (const match of text.matchAll(hidden)) {
    const [character] = match;
    const end = match.index + character.length;
    if (allowed(character, text[end])) continue;
    yield text.slice(from, match.index);
    yield element("span", { class: "code-point" }, code(character));
    from = end;
  }
  yield text.slice(from);
}

/** `U+202E` */
function code(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}
