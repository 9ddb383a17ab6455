// Making elements. Texts become text nodes, whatever is in them.

type Child = Node | string;

/** Attributes that are set; of no other is the value foreign anywhere. */
interface Attributes {
  class?: string;
  id?: string;
  dir?: "auto" | "ltr";
  type?: "button";
  title?: string;
}

export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...children);
  return made;
}

/** A button that does something. */
export function button(label: Child, action: () => void): HTMLButtonElement {
  const made = element("button", { type: "button" }, label);
  made.addEventListener("click", action);
  return made;
}

/** An element of the page's own HTML. */
export function byId<Kind extends HTMLElement>(id: string, kind: new () => Kind): Kind {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no ${kind.name} #${id}`);
  return found;
}
