// The lines that match the filters, one page at a time.

import { grouped } from "../shared/format.js";
import { create, element, setText } from "../shared/page.js";
import type { Page } from "./enquiry.js";
import { setHighlighted } from "./highlight.js";
import type { Row } from "./protocol.js";
import { visible } from "./visible.js";

/** Lines on one page. */
const PAGE_LINES = 25;
/** An empty table has the height of this many rows, for the reason why it is empty. */
const ROWS_IF_EMPTY = 3;

export class LinesTable {
  readonly #body = element("lines");
  readonly #search = element("lines-search") as HTMLInputElement;
  readonly #turn: () => void;
  #offset = 0;
  #total = 0;

  /** `turn` is called to request another page, whose first line is `offset`. */
  constructor(turn: () => void) {
    this.#turn = turn;
    for (let i = 0; i < PAGE_LINES; i += 1) {
      const row = create("tr", "line-row");
      const number = create("th", "line-number");
      number.scope = "row";
      row.append(number, create("td", "line-text"));
      this.#body.append(row);
    }
    for (const [id, step] of [
      ["lines-first", -Infinity],
      ["lines-previous", -PAGE_LINES],
      ["lines-next", PAGE_LINES],
      ["lines-last", Infinity],
    ] as const) {
      element(id).addEventListener("click", () => this.#go(step));
    }
    this.#search.addEventListener("input", () => {
      this.rewind();
      this.#turn();
    });
    this.clear();
  }

  /** Which lines are shown. */
  get page(): Page {
    return { containing: this.#search.value, offset: this.#offset, limit: PAGE_LINES };
  }

  /** Returns to the first page because another selection is shown. */
  rewind(): void {
    this.#offset = 0;
  }

  show(total: number, rows: readonly Row[]): void {
    this.#total = total;
    [...this.#body.children].forEach((child, i) => {
      const [number, text] = child.children;
      const row = rows[i];
      if (number !== undefined && text !== undefined) {
        setText(number, row === undefined ? "" : grouped(row.line));
        setHighlighted(text, visible(row?.text ?? ""), this.#search.value);
        child.ariaHidden = row === undefined ? "true" : null;
        // A single page is as high as its lines; the last of several keeps the buttons in place.
        (child as HTMLElement).hidden = total < PAGE_LINES && i >= Math.max(total, ROWS_IF_EMPTY);
      }
    });
    const last = Math.min(total, this.#offset + rows.length);
    setText(
      element("lines-note"),
      total === 0 ? "" : `${grouped(this.#offset + 1)} to ${grouped(last)} of ${grouped(total)}`,
    );
    element("lines-note").dataset["value"] = String(total);
    setText(element("lines-empty"), total === 0 ? this.#whyEmpty() : "");
    this.#enable();
  }

  /** Shows the server's reason instead of lines. */
  refuse(why: string): void {
    this.show(0, []);
    setText(element("lines-empty"), why);
  }

  clear(): void {
    this.rewind();
    this.show(0, []);
    setText(element("lines-empty"), "");
  }

  #go(step: number): void {
    const lastPage = Math.max(0, Math.floor((this.#total - 1) / PAGE_LINES) * PAGE_LINES);
    this.#offset = Math.max(0, Math.min(lastPage, this.#offset + step));
    this.#turn();
  }

  #whyEmpty(): string {
    return this.#search.value === ""
      ? "No line matches the filters."
      : "No line that matches the filters contains this text.";
  }

  #enable(): void {
    const isFirst = this.#offset === 0;
    const isLast = this.#offset + PAGE_LINES >= this.#total;
    for (const [id, off] of [
      ["lines-first", isFirst],
      ["lines-previous", isFirst],
      ["lines-next", isLast],
      ["lines-last", isLast],
    ] as const) {
      // Not `disabled`, which would take the focus away from keyboard users.
      element(id).setAttribute("aria-disabled", String(off));
    }
  }
}
