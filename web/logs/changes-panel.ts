// The panel "What changed?": the values that explain why a period differs from another one.

import { grouped } from "../shared/format.js";
import { element, setText } from "../shared/page.js";
import { changeOf, directionOf } from "./change.js";
import {
  type Change,
  changesQueryOf,
  differenceOf,
  periodsOf,
  scopeOf,
  shareOf,
  whyNoneOf,
} from "./changes.js";
import type { SideQuestion } from "./enquiry.js";
import type { Figures } from "./figures-view.js";
import type { Answer } from "./protocol.js";
import { spanOnAxis } from "./ranges.js";
import { type SidePanel, StandingQuestion } from "./standing-question.js";
import { type Choose, type ValueRow, ValueTable } from "./value-table.js";
import type { View } from "./view.js";

/** The values that are shown: as many as the server lists. */
const ROWS = 20;
const COLUMNS = ["Value", "Before", "After", "Share", "Change"];

export interface ChangesEvents {
  ask(question: SideQuestion | null): void;
  /** A value was clicked. */
  choose: Choose;
}

export class ChangesPanel implements SidePanel {
  readonly #panel = element("changes");
  readonly #title = element("changes-title");
  readonly #button = element("what-changed");
  readonly #table: ValueTable;
  readonly #question: StandingQuestion;
  #view: View | undefined;
  #figures: Figures | undefined;

  constructor({ ask, choose }: ChangesEvents) {
    this.#question = new StandingQuestion(ask);
    const table = element("changes-table") as HTMLTableElement;
    this.#table = new ValueTable(table, "changes-rows", COLUMNS, ROWS, choose);
    this.#button.addEventListener("click", () => (this.#isOpen ? this.close() : this.#open()));
    element("changes-close").addEventListener("click", () => this.close());
    addEventListener("keydown", (event) => {
      const target = event.target as Node;
      const isOurs = [document.body, this.#button].includes(target as HTMLElement);
      if (event.key === "Escape" && this.#isOpen && (isOurs || this.#panel.contains(target))) {
        this.close();
      }
    });
  }

  /** Another view was chosen. */
  showView(view: View): void {
    this.#view = view;
    this.#ask();
  }

  /** Figures of the view have arrived. */
  handleFigures(figures: Figures): void {
    this.#figures = figures;
    this.#ask();
  }

  show(answer: Answer): void {
    if (answer.type !== "changes") {
      return;
    }
    const { changes } = answer;
    const { filters } = this.#view ?? { filters: [] };
    const parts = [differenceOf(changes), periodsOf(changes), scopeOf(filters)];
    if (changes.approximate) {
      parts.push("Requests whose values are not tracked are left out.");
    }
    setText(element("changes-note"), parts.filter((it) => it !== "").join(" "));
    setText(element("changes-empty"), whyNoneOf(changes));
    this.#table.show(changes.values.map(rowOf), filters, true);
  }

  showProgress(fraction: number): void {
    setText(element("changes-note"), `Comparing … ${Math.floor(100 * fraction)} %`);
  }

  refuse(why: string): void {
    this.#empty(why);
  }

  close(): void {
    const hadFocus = this.#panel.contains(document.activeElement);
    this.#hide();
    if (hadFocus) {
      this.#button.focus({ preventScroll: true });
    }
  }

  /** Closes the panel because another log is shown. */
  clear(): void {
    this.#figures = undefined;
    this.#hide();
  }

  #hide(): void {
    this.#panel.hidden = true;
    this.#button.setAttribute("aria-expanded", "false");
    this.#question.want(null, 0, false);
    this.#empty("");
  }

  get #isOpen(): boolean {
    return !this.#panel.hidden;
  }

  #open(): void {
    this.#panel.hidden = false;
    this.#button.setAttribute("aria-expanded", "true");
    this.#ask();
    this.#title.focus({ preventScroll: true });
    this.#panel.scrollIntoView({ block: "nearest" });
  }

  #ask(): void {
    const figures = this.#figures;
    if (!this.#isOpen || figures === undefined || this.#view === undefined) {
      return;
    }
    const query = changesQueryOf(this.#view, spanOnAxis(figures.whole));
    const question: SideQuestion | null = query && { type: "changes", query };
    const isAsked = this.#question.want(question, figures.whole.requests, figures.isFinal);
    if (query === null) {
      this.#empty("Select a period first: drag across the chart, or choose two ranges above.");
    } else if (isAsked) {
      setText(element("changes-note"), "Comparing …");
    }
  }

  #empty(why: string): void {
    setText(element("changes-note"), why);
    setText(element("changes-empty"), "");
    this.#table.show([], [], true);
  }
}

function rowOf(change: Change): ValueRow {
  const { field, value, before, after, share } = change;
  return {
    label: value === "" ? "(none)" : value,
    meaning: field,
    length: Math.abs(share ?? after - before),
    colour: "bar-plain",
    cells: [
      { text: grouped(before), exact: before },
      { text: grouped(after), exact: after },
      { text: shareOf(change), exact: share ?? 0 },
      { text: changeOf(after, before), exact: 0, tone: `change-${directionOf(after, before)}` },
    ],
    choice: { field, value, exclude: false },
  };
}
