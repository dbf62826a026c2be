// Marks the places in a text that match a search.

import { create } from "../shared/page.js";

/** A part of a text, and whether it matches. */
export interface Part {
  text: string;
  isMatch: boolean;
}

/** Splits a text into parts that match a search, in upper or lower case, and those between. */
export function partsOf(text: string, search: string): Part[] {
  if (search === "") {
    return text === "" ? [] : [{ text, isMatch: false }];
  }
  const escaped = search.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return text
    .split(new RegExp(`(${escaped})`, "giu"))
    .map((part, i) => ({ text: part, isMatch: i % 2 === 1 }))
    .filter((part) => part.text !== "");
}

/** Writes a text with its matches in <mark> elements. */
export function setHighlighted(target: Element, text: string, search: string): void {
  target.replaceChildren(
    ...partsOf(text, search).map((part) =>
      part.isMatch ? create("mark", "", part.text) : document.createTextNode(part.text),
    ),
  );
}
