// All values of a field, sorted by any of their figures. The server sorts all of them, not only
// those that are shown.

import { grouped, humanBytes } from "../shared/format.js";
import { create, element, setText } from "../shared/page.js";
import type { SideQuestion } from "./enquiry.js";
import type { Figures } from "./figures-view.js";
import { duration } from "./latency.js";
import type { Answer } from "./protocol.js";
import type { Field } from "./query.js";
import { type SidePanel, StandingQuestion } from "./standing-question.js";
import { type ListedValue, noteOf, type SortKey } from "./value-list.js";
import { type Cell, type Choose, type ValueRow, ValueTable } from "./value-table.js";
import type { View } from "./view.js";

/** The most values that are listed. */
const LISTED = 100;
/** The rows that an empty table has room for. */
const ROWS = 12;

/** The columns after the value; those without a key cannot be sorted by. */
const COLUMNS: { label: string; key: SortKey | null; cell(value: ListedValue): Cell }[] = [
  {
    label: "Requests",
    key: "requests",
    cell: ({ requests }) => ({ text: grouped(requests), exact: requests }),
  },
  {
    label: "Bytes sent",
    key: "bytes",
    cell: ({ bytes }) => ({ text: humanBytes(bytes), exact: bytes }),
  },
  {
    label: "Errors",
    key: "errors",
    cell: ({ errors }) => ({ text: grouped(errors), exact: errors }),
  },
  { label: "Mean", key: "mean", cell: ({ latency }) => timeCell(latency?.mean_us) },
  { label: "p50", key: null, cell: ({ latency }) => timeCell(latency?.p50_us) },
  { label: "p90", key: null, cell: ({ latency }) => timeCell(latency?.p90_us) },
  { label: "p99", key: null, cell: ({ latency }) => timeCell(latency?.p99_us) },
  { label: "p99.9", key: null, cell: ({ latency }) => timeCell(latency?.p999_us) },
  { label: "Slowest", key: "slowest", cell: ({ latency }) => timeCell(latency?.max_us) },
];

export interface ValuesEvents {
  ask(question: SideQuestion | null): void;
  choose: Choose;
}

export class ValuesPanel implements SidePanel {
  readonly #panel = element("values-panel");
  readonly #select = element("values-field") as HTMLSelectElement;
  readonly #note = element("values-note");
  readonly #table: ValueTable;
  readonly #headings: { key: SortKey; heading: HTMLTableCellElement }[] = [];
  readonly #question: StandingQuestion;
  #view: View | undefined;
  #figures: Figures | undefined;
  #by: SortKey = "requests";
  #ascending = false;

  constructor({ ask, choose }: ValuesEvents) {
    this.#question = new StandingQuestion(ask);
    const table = element("values-table") as HTMLTableElement;
    const labels = ["Value", ...COLUMNS.map(({ label }) => label)];
    this.#table = new ValueTable(table, "values-rows", labels, ROWS, choose);
    const headings = table.tHead?.rows[0]?.cells;
    COLUMNS.forEach(({ label, key }, i) => {
      const heading = headings?.[i + 1];
      if (heading !== undefined && key !== null) {
        heading.replaceChildren(this.#sortButton(label, key));
        this.#headings.push({ key, heading });
      }
    });
    this.#select.addEventListener("change", () => this.#ask());
    this.#showOrder();
  }

  /** Another view was chosen. */
  showView(view: View): void {
    this.#view = view;
    this.#ask();
  }

  /** Figures of the view have arrived. */
  handleFigures(figures: Figures): void {
    this.#figures = figures;
    const country = this.#select.querySelector<HTMLOptionElement>('[value="country"]');
    if (country !== null) {
      country.hidden = figures.whole.countries === null;
    }
    this.#panel.classList.toggle("values-timed", figures.whole.latency !== null);
    this.#ask();
  }

  show(answer: Answer): void {
    if (answer.type !== "values") {
      return;
    }
    const { list } = answer;
    const field = this.#select.value as Field;
    const rows = list.values.map((it) => this.#rowOf(it, field));
    const isNone = list.values.every(({ value }) => value === "");
    this.#table.resize(Math.max(ROWS, rows.length));
    this.#table.show(isNone ? [] : rows, this.#view?.filters ?? [], true);
    setText(this.#note, isNone ? "No request has a value." : noteOf(list));
  }

  showProgress(fraction: number): void {
    setText(this.#note, `Sorting … ${Math.floor(100 * fraction)} %`);
  }

  refuse(why: string): void {
    setText(this.#note, why);
    this.#table.show([], [], true);
  }

  clear(): void {
    this.#figures = undefined;
    this.#question.want(null, 0, false);
    this.refuse("");
  }

  #ask(): void {
    const figures = this.#figures;
    if (figures === undefined || this.#view === undefined) {
      return;
    }
    const { range, filters } = this.#view;
    const query = {
      field: this.#select.value as Field,
      by: this.#by,
      ascending: this.#ascending,
      from: range?.from ?? null,
      until: range?.until ?? null,
      filters,
      top_max: LISTED,
    };
    this.#question.want({ type: "values", query }, figures.whole.requests, figures.isFinal);
  }

  #sortButton(label: string, key: SortKey): HTMLButtonElement {
    const button = create("button", "values-sort", label);
    button.type = "button";
    button.dataset["testid"] = `values-by-${key}`;
    button.addEventListener("click", () => {
      this.#ascending = key === this.#by && !this.#ascending;
      this.#by = key;
      this.#showOrder();
      this.#ask();
    });
    return button;
  }

  #showOrder(): void {
    for (const { key, heading } of this.#headings) {
      if (key === this.#by) {
        heading.setAttribute("aria-sort", this.#ascending ? "ascending" : "descending");
      } else {
        heading.removeAttribute("aria-sort");
      }
    }
  }

  #rowOf(listed: ListedValue, field: Field): ValueRow {
    const { value } = listed;
    const cells = COLUMNS.map(({ cell }) => cell(listed));
    const sorted = COLUMNS.findIndex(({ key }) => key === this.#by);
    return {
      label: value === "" ? "(none)" : value,
      length: cells[sorted]?.exact ?? 0,
      colour: "bar-plain",
      cells,
      choice: { field, value, exclude: false },
    };
  }
}

function timeCell(us: number | undefined): Cell {
  return us === undefined ? { text: "–", exact: 0 } : { text: duration(us), exact: us };
}
