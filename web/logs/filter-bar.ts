// The active filters as chips that can be changed or removed, and a form to write a filter.

import { create, element, setText } from "../shared/page.js";
import type { Misplaced } from "./protocol.js";

interface FilterBarEvents {
  change(filters: readonly string[]): void;
}

export class FilterBar {
  readonly #chips = element("filters");
  readonly #menu = element("add-filter") as HTMLDetailsElement;
  readonly #text = element("filter-text") as HTMLInputElement;
  readonly #events: FilterBarEvents;
  #filters: readonly string[] = [];
  /** The filter that is being edited, or undefined for a new one. */
  #changed: number | undefined;
  /** The filter that the form submitted last. */
  #written: number | undefined;

  constructor(events: FilterBarEvents) {
    this.#events = events;
    element("filter-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit(this.#text.value.trim());
    });
    this.#menu.addEventListener("toggle", () => this.#handleToggle());
    this.#menu.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        this.#close();
      }
    });
    element("clear-filters").addEventListener("click", () => events.change([]));
    this.#chips.addEventListener("click", ({ target }) => this.#handleClick(target as Element));
  }

  show(filters: readonly string[]): void {
    if (filters.join("\n") === this.#filters.join("\n")) {
      return;
    }
    this.#filters = [...filters];
    const had = this.#chips.contains(document.activeElement);
    this.#chips.replaceChildren(...filters.map(chip));
    setText(
      element("filters-none"),
      filters.length === 0 ? "No filters: click any value below to add one." : "",
    );
    element("clear-filters").hidden = filters.length === 0;
    if (had) {
      const next = this.#chips.querySelector<HTMLElement>("button");
      (next ?? element("filter-open")).focus();
    }
  }

  /** Marks the filter that the server refused; none if it accepted all. */
  showProblem(message: string, at: Misplaced | undefined): void {
    [...this.#chips.children].forEach((item, i) => {
      item.classList.toggle("chip-bad", i === at?.filter);
      item.querySelector(".chip-change")?.setAttribute("aria-invalid", String(i === at?.filter));
    });
    if (at !== undefined && at.filter === this.#written) {
      // The filter has just been submitted: put the caret where the error is.
      this.#open(at.filter, at.column);
      setText(element("filter-problem"), message);
      this.#text.setAttribute("aria-invalid", "true");
    }
    this.#written = undefined;
  }

  #submit(text: string): void {
    if (text === "") {
      return;
    }
    const at = this.#changed ?? this.#filters.length;
    const filters = [...this.#filters.slice(0, at), text, ...this.#filters.slice(at + 1)];
    const distinct = [...new Set(filters)];
    this.#close();
    this.#events.change(distinct);
    this.#written = distinct.indexOf(text);
  }

  #open(filter: number, column?: number): void {
    const text = this.#filters[filter] ?? "";
    this.#menu.open = true;
    this.#changed = filter;
    this.#text.value = text;
    setText(element("filter-submit"), "Change");
    this.#text.focus();
    // The server counts characters, but the field counts UTF-16 code units.
    const at = [...text].slice(0, (column ?? Infinity) - 1).join("").length;
    this.#text.setSelectionRange(at, at);
  }

  #close(): void {
    this.#menu.open = false;
    element("filter-open").focus();
  }

  #handleToggle(): void {
    if (this.#menu.open) {
      this.#text.focus();
      return;
    }
    this.#changed = undefined;
    this.#text.value = "";
    this.#text.removeAttribute("aria-invalid");
    setText(element("filter-problem"), "");
    setText(element("filter-submit"), "Add");
  }

  #handleClick(target: Element): void {
    const item = target.closest("li");
    const place = item === null ? -1 : [...this.#chips.children].indexOf(item);
    if (place >= 0 && target.closest(".chip-remove") !== null) {
      this.#events.change(this.#filters.filter((_, i) => i !== place));
    } else if (place >= 0 && target.closest(".chip-change") !== null) {
      this.#open(place);
    }
  }
}

function chip(filter: string): HTMLLIElement {
  const item = create("li", "chip");
  item.dataset["testid"] = "filter";
  const change = create("button", "chip-change", filter);
  change.type = "button";
  change.title = `${filter}\nClick to change it`;
  const remove = create("button", "chip-remove", "×");
  remove.type = "button";
  remove.setAttribute("aria-label", `Remove the filter ${filter}`);
  item.append(change, remove);
  return item;
}
