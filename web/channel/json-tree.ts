// JSON as a tree that the user unfolds. Children are created when their parent is unfolded, a
// hundred at a time, so that neither depth nor size matters.

import { create, setText } from "../shared/page.js";
import { counted, grouped } from "../shared/format.js";
import { preview, shortened } from "./payload.js";

/** The number of children that are added at once. */
export const CHILDREN_STEP = 100;
/** Number of characters shown of a key, and of the preview of a folded value. */
const KEY_MAX = 200;
/** Number of characters shown of a string. */
const STRING_MAX = 2_000;

/** Returns the tree of a parsed value, with its first level unfolded. */
export function jsonTree(value: unknown): HTMLElement {
  const tree = create("div", "tree");
  const root = nodeOf(undefined, value);
  tree.append(root);
  if (root instanceof HTMLDetailsElement) {
    root.open = true;
  }
  return tree;
}

/** Returns the text that stands for a value: a scalar, or the kind and size of others. */
export function label(value: unknown): string {
  if (typeof value === "object" && value !== null) {
    const size = sizeOf(value);
    return Array.isArray(value)
      ? `[${size === 0 ? "" : ` ${counted(size, "element")} `}]`
      : `{${size === 0 ? "" : ` ${counted(size, "field")} `}}`;
  }
  return typeof value === "string" ? quoted(value) : String(value);
}

/** Returns the number of elements of a list, or of fields of an object. */
function sizeOf(value: object): number {
  return Array.isArray(value) ? value.length : Object.keys(value).length;
}

/** Returns up to `limit` children of a list or an object, from the index `from` on. */
export function children(value: object, from: number, limit: number): [string, unknown][] {
  if (Array.isArray(value)) {
    const part: unknown[] = value.slice(from, from + limit);
    return part.map((child, i) => [String(from + i), child]);
  }
  const keys = Object.keys(value).slice(from, from + limit);
  // Own properties only: a key such as `__proto__` is a key like any other.
  return keys.map((key) => [key, Object.getOwnPropertyDescriptor(value, key)?.value]);
}

function nodeOf(key: string | undefined, value: unknown): HTMLElement {
  const name = key === undefined ? [] : [create("span", "tree-key", preview(key, KEY_MAX)), ": "];
  if (typeof value !== "object" || value === null || sizeOf(value) === 0) {
    const leaf = create("div", "tree-leaf");
    leaf.append(...name, create("span", `tree-value tree-${kindOf(value)}`, label(value)));
    return leaf;
  }
  const node = create("details", "tree-node");
  const summary = create("summary");
  summary.append(...name, create("span", "tree-size", label(value)));
  const inner = create("div", "tree-children");
  node.append(summary, inner);
  node.addEventListener("toggle", () => {
    if (node.open && inner.childElementCount === 0) {
      addChildren(inner, value, 0);
    }
  });
  return node;
}

function addChildren(into: HTMLElement, value: object, from: number): void {
  const added = children(value, from, CHILDREN_STEP);
  into.append(...added.map(([key, child]) => nodeOf(key, child)));
  const total = sizeOf(value);
  const next = from + added.length;
  if (next < total) {
    const more = create("button", "quiet");
    more.type = "button";
    setText(
      more,
      `Show ${grouped(Math.min(CHILDREN_STEP, total - next))} of ${grouped(total - next)} more`,
    );
    more.addEventListener("click", () => {
      more.remove();
      addChildren(into, value, next);
    });
    into.append(more);
  }
}

function kindOf(value: unknown): string {
  return value === null ? "null" : typeof value;
}

/** Returns a string in quotes, with escapes as in JSON. */
function quoted(text: string): string {
  const start = JSON.stringify(text.slice(0, STRING_MAX));
  const missing = text.length - STRING_MAX;
  const shown = shortened(start, start.length);
  return missing > 0 ? `${shown} … (${grouped(missing)} more characters)` : shown;
}
