// A table of values with bars: each value can be shown alone or excluded, by pointer or keyboard.

import { create, element, setFigure, setText } from "../shared/page.js";
import { type Choice, filterOf } from "./query.js";
import { visible } from "./visible.js";

export interface Cell {
  text: string;
  /** The figure itself, for scripts and tests. */
  exact: number;
  /** A class name, if the figure has its own colour. */
  tone?: string;
}

export interface ValueRow {
  label: string;
  /** A note beside the label, if there is one. */
  meaning?: string;
  /** The length of the bar, in the same unit as in other rows. */
  length: number;
  /** A class name that colours the bar. */
  colour: string;
  cells: Cell[];
  /** The choice that a click on the row makes. */
  choice: Choice;
}

/** A click or key on a row: show only its value, or hide it. */
export type Choose = (choice: Choice) => void;

/** A label of more characters has an end that stays visible, of this many. */
const LONG_LABEL = 40;
const LABEL_END = 28;
/** An empty table has the height of this many rows, for the reason why it is empty. */
const ROWS_IF_EMPTY = 3;

/**
 * Rows are filled in place and their number is fixed, so that nothing below moves while figures
 * arrive; rows that are still empty at the end are hidden. If there are to be more, the table
 * scrolls. One row at a time can be reached with Tab,
 * and the arrow keys move on from there.
 */
export class ValueTable {
  readonly #body: HTMLTableSectionElement;
  readonly #cells: number;
  readonly #rowsAtFirst: number;
  #rowsMax = 0;
  readonly #choose: Choose;
  #rows: ValueRow[] = [];
  #current = 0;

  /** `columns` are the headings: of the value, then of each cell. The last may be empty. */
  constructor(
    table: HTMLTableElement,
    id: string,
    columns: string[],
    rowsMax: number,
    choose: Choose,
  ) {
    this.#cells = columns.length - 1;
    this.#choose = choose;
    table.className = "values";
    const head = create("thead");
    const headings = create("tr");
    for (const column of columns) {
      // An empty heading would be announced.
      const heading = column === "" ? create("td") : create("th", "", column);
      if (heading.tagName === "TH") {
        heading.setAttribute("scope", "col");
      }
      headings.append(heading);
    }
    const actions = create("th", "values-actions");
    actions.append(create("span", "unseen", "Exclude"));
    headings.append(actions);
    head.append(headings);
    this.#body = create("tbody");
    this.#body.dataset["testid"] = id;
    table.append(head, this.#body);
    table.parentElement?.style.setProperty("--rows", String(rowsMax));
    this.#rowsAtFirst = rowsMax;
    this.resize(rowsMax);
    this.#body.addEventListener("click", (event) => this.#handleClick(event));
    this.#body.addEventListener("keydown", (event) => this.#handleKey(event));
  }

  /** Sets the number of rows. */
  resize(rowsMax: number): void {
    for (let i = this.#rowsMax; i < rowsMax; i += 1) {
      this.#body.append(emptyRow(this.#cells));
    }
    for (let i = this.#rowsMax; i > rowsMax; i -= 1) {
      this.#body.deleteRow(-1);
    }
    this.#rowsMax = rowsMax;
    const scrolled = this.#body.closest(".values-scrolled");
    scrolled?.classList.toggle("values-many", rowsMax > this.#rowsAtFirst);
  }

  /** Fills the table. `isFinal` is true if no more values will follow for now. */
  show(rows: ValueRow[], filters: readonly string[], isFinal: boolean): void {
    const hadFocus = this.#body.contains(document.activeElement);
    const focused = hadFocus ? this.#rows[this.#current]?.label : undefined;
    this.#rows = rows.slice(0, this.#rowsMax);
    const place = this.#rows.findIndex(({ label }) => label === focused);
    const current = place >= 0 ? place : this.#current;
    this.#current = Math.max(0, Math.min(current, this.#rows.length - 1));
    const longest = this.#rows.reduce((most, { length }) => Math.max(most, length), 0);
    const shown = isFinal ? this.#rows.length || ROWS_IF_EMPTY : this.#rowsMax;
    [...this.#body.rows].forEach((row, i) => {
      fill(row, this.#rows[i], longest, filters, i === this.#current);
      row.hidden = i >= shown;
    });
    if (hadFocus) {
      this.#keepFocus();
    }
  }

  /** Moves the focus to the row of the value that had it, or out of the table if it is empty. */
  #keepFocus(): void {
    const from = document.activeElement;
    const row = this.#body.rows[this.#current];
    const kind = from?.classList.contains("value-exclude") ? ".value-exclude" : ".value-name";
    const target = row?.querySelector<HTMLButtonElement>(kind);
    if (this.#rows.length === 0 || !target) {
      element("filter-open").focus({ preventScroll: true });
    } else if (target !== from) {
      target.focus({ preventScroll: true });
    }
  }

  #handleClick({ target }: Event): void {
    const button = (target as Element).closest<HTMLButtonElement>("button");
    const row = button?.closest("tr");
    const chosen = row === null || row === undefined ? undefined : this.#rows[row.sectionRowIndex];
    if (button !== null && chosen !== undefined) {
      this.#current = row?.sectionRowIndex ?? 0;
      this.#choose({ ...chosen.choice, exclude: button.classList.contains("value-exclude") });
    }
  }

  #handleKey(event: KeyboardEvent): void {
    const chosen = this.#rows[this.#current];
    if ((event.key === "Delete" || event.key === "Backspace") && chosen !== undefined) {
      event.preventDefault();
      this.#choose({ ...chosen.choice, exclude: true });
      return;
    }
    const last = this.#rows.length - 1;
    const target = {
      ArrowDown: Math.min(last, this.#current + 1),
      ArrowUp: Math.max(0, this.#current - 1),
      Home: 0,
      End: last,
    }[event.key];
    if (target !== undefined && last >= 0) {
      event.preventDefault();
      this.#moveTo(target);
    }
  }

  #moveTo(target: number): void {
    for (const [i, row] of [...this.#body.rows].entries()) {
      for (const button of row.querySelectorAll("button")) {
        button.tabIndex = i === target ? 0 : -1;
      }
    }
    this.#current = target;
    this.#body.rows[target]?.querySelector<HTMLButtonElement>(".value-name")?.focus();
  }
}

function emptyRow(cells: number): HTMLTableRowElement {
  const row = create("tr", "value-row");
  const label = create("th", "value-label");
  label.scope = "row";
  const bar = create("span", "bar");
  bar.setAttribute("aria-hidden", "true");
  label.append(bar, button("value-name"), create("span", "value-meaning"));
  row.append(label);
  for (let i = 0; i < cells; i += 1) {
    row.append(create("td", "value-cell"));
  }
  const actions = create("td", "values-actions");
  actions.append(button("value-exclude", "−"));
  row.append(actions);
  return row;
}

function button(className: string, text = ""): HTMLButtonElement {
  const made = create("button", className, text);
  made.type = "button";
  made.tabIndex = -1;
  made.hidden = true;
  return made;
}

function fill(
  row: HTMLTableRowElement,
  data: ValueRow | undefined,
  longest: number,
  filters: readonly string[],
  isCurrent: boolean,
): void {
  const bar = row.querySelector<HTMLElement>(".bar");
  const name = row.querySelector<HTMLButtonElement>(".value-name");
  const meaning = row.querySelector<HTMLElement>(".value-meaning");
  const exclude = row.querySelector<HTMLButtonElement>(".value-exclude");
  if (bar === null || name === null || meaning === null || exclude === null) {
    return;
  }
  bar.className = `bar ${data?.colour ?? ""}`;
  bar.style.width = `${data === undefined ? 0 : (100 * data.length) / Math.max(1, longest)}%`;
  row.dataset["value"] = data?.label ?? "";
  row.ariaHidden = data === undefined ? "true" : null;
  setText(meaning, data?.meaning ?? "");
  setLabel(name, visible(data?.label ?? ""));
  for (const it of [name, exclude]) {
    it.hidden = data === undefined;
    it.tabIndex = isCurrent ? 0 : -1;
  }
  if (data !== undefined) {
    const isOnly = filters.includes(filterOf({ ...data.choice, exclude: false }));
    const label = visible(data.label);
    name.title = isOnly ? `Show all again, not only ${label}` : `Show only ${label}`;
    name.setAttribute("aria-pressed", String(isOnly));
    exclude.title = `Exclude ${label}`;
    exclude.setAttribute("aria-label", `Exclude ${label}`);
  }
  [...row.querySelectorAll<HTMLElement>(".value-cell")].forEach((cell, i) => {
    const { text, exact, tone } = data?.cells[i] ?? { text: "", exact: 0 };
    setFigure(cell, text, exact);
    cell.className = `value-cell ${tone ?? ""}`.trim();
  });
}

/**
 * Writes a label whose end stays visible if it is too long: user agents and addresses often differ
 * only there.
 */
function setLabel(name: HTMLElement, label: string): void {
  if (name.textContent === label) {
    return;
  }
  const chars = [...label];
  const end = chars.length > LONG_LABEL ? chars.splice(-LABEL_END) : [];
  const start = create("span", "label-start", chars.join(""));
  name.replaceChildren(
    start,
    ...(end.length === 0 ? [] : [create("span", "label-end", end.join(""))]),
  );
}
