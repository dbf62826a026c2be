// The first few lines that did not parse, as text.

import { grouped } from "../shared/format.js";
import { create, element, setText } from "../shared/page.js";
import type { Summary, UnparsedLine } from "./summary.js";
import { visible } from "./visible.js";

/** Appends the samples that are not shown yet; the server only adds to them. */
export function showUnparsedLines(summary: Summary): void {
  const { unparsed, unparsed_reasons, unparsed_samples } = summary;
  const list = element("unparsed-lines");
  for (const sample of unparsed_samples.slice(list.childElementCount)) {
    list.append(row(sample));
  }
  setText(element("unparsed-lines-note"), noteOf(unparsed, unparsed_samples.length));
  setText(element("unparsed-reasons"), unparsed > 1 ? reasonsLine(unparsed_reasons) : "");
}

export function clearUnparsedLines(): void {
  element("unparsed-lines").replaceChildren();
  setText(element("unparsed-reasons"), "");
  setText(element("unparsed-lines-note"), noteOf(0, 0));
}

/** Formats the reasons, most frequent first: "3 × no timestamp · 1 × no status". */
export function reasonsLine(reasons: Record<string, number>): string {
  return Object.entries(reasons)
    .sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1))
    .map(([reason, count]) => `${grouped(count)} × ${reason}`)
    .join(" · ");
}

/** Returns how many of the unparsed lines are shown. */
export function noteOf(unparsed: number, shown: number): string {
  if (unparsed === 0) {
    return "None so far.";
  }
  if (unparsed > shown) {
    return `The first ${grouped(shown)} of ${grouped(unparsed)}, as in the file.`;
  }
  return unparsed === 1 ? "As in the file." : `All ${grouped(unparsed)}, as in the file.`;
}

function row({ line, reason, text }: UnparsedLine): HTMLLIElement {
  const item = create("li", "unparsed-line");
  const head = create("p", "unparsed-head");
  const number = create("span", "unparsed-number", `Line ${grouped(line)}`);
  number.dataset["testid"] = "unparsed-line";
  number.dataset["value"] = String(line);
  const why = create("span", "unparsed-reason", reason);
  why.dataset["testid"] = "unparsed-reason";
  head.append(number, why);
  const code = create("code", "unparsed-text", visible(text));
  code.dataset["testid"] = "unparsed-text";
  code.tabIndex = 0; // It scrolls sideways, which needs the focus for keyboard users.
  item.append(head, code);
  return item;
}
