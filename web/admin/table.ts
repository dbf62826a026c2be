// Tables whose rows are reused, so that focus and selection survive when figures come in.

import { create, setText } from "../shared/page.js";

export interface Column<Row> {
  /** The class name of its cells. */
  name: string;
  text(row: Row): string;
  /** The tooltip of the cell. */
  title?(row: Row): string;
  /** Where the cell leads, if it is a link. */
  href?(row: Row): string;
}

/** Shows rows in a table body; the last cell may hold a button. */
export class Table<Row> {
  readonly #body: HTMLElement;
  readonly #columns: readonly Column<Row>[];
  readonly #action: { label: string; describe(row: Row): string; act(row: Row): void } | undefined;
  readonly #empty: string;
  #rows: Row[] = [];

  /** `empty` is shown when there are no rows. */
  constructor(
    body: HTMLElement,
    columns: readonly Column<Row>[],
    empty: string,
    action?: { label: string; describe(row: Row): string; act(row: Row): void },
  ) {
    this.#body = body;
    this.#columns = columns;
    this.#empty = empty;
    this.#action = action;
  }

  show(rows: Row[]): void {
    this.#rows = rows;
    this.#body.querySelector(".empty")?.remove();
    while (this.#body.childElementCount > rows.length) {
      this.#body.lastElementChild?.remove();
    }
    rows.forEach((row, i) => this.#fill(this.#rowAt(i), row));
    if (rows.length === 0) {
      const cell = create("td", "note", this.#empty);
      cell.colSpan = this.#columns.length + (this.#action === undefined ? 0 : 1);
      const empty = create("tr", "empty");
      empty.append(cell);
      this.#body.append(empty);
    }
  }

  #rowAt(index: number): HTMLElement {
    const known = this.#body.children[index];
    if (known !== undefined) {
      return known as HTMLElement;
    }
    const row = create("tr");
    for (const { name, href } of this.#columns) {
      const cell = create("td", name);
      if (href !== undefined) {
        cell.append(create("a"));
      }
      row.append(cell);
    }
    if (this.#action !== undefined) {
      const { label, act } = this.#action;
      const button = create("button", "quiet", label);
      button.type = "button";
      button.addEventListener("click", () => {
        const shown = this.#rows[index];
        if (shown !== undefined) {
          act(shown);
        }
      });
      const cell = create("td", "action");
      cell.append(button);
      row.append(cell);
    }
    this.#body.append(row);
    return row;
  }

  #fill(row: HTMLElement, data: Row): void {
    this.#columns.forEach(({ text, title, href }, i) => {
      const cell = row.children[i] as HTMLElement;
      const link = cell.querySelector("a");
      setText(link ?? cell, text(data));
      if (link !== null && href !== undefined) {
        link.href = href(data);
      }
      const hint = title?.(data) ?? "";
      if (cell.title !== hint) {
        cell.title = hint;
      }
    });
    const { describe } = this.#action ?? {};
    if (describe !== undefined) {
      row.querySelector("button")?.setAttribute("aria-label", describe(data));
    }
  }
}
