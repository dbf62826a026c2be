// The active filters as chips that can be changed or removed, and a form to write a filter.

import { create, element, setText } from "../shared/page.js";
import type { Misplaced } from "./protocol.js";
import { visible } from "./visible.js";

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
  /** What the form submitted last: a text, and the filter that it replaced, if any. */
  #written: { text: string; changed: number | undefined } | undefined;

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
    const clear = element("clear-filters");
    const hadClear = document.activeElement === clear;
    clear.hidden = filters.length === 0;
    if (hadClear && clear.hidden) {
      element("filter-open").focus();
    } else if (had) {
      const next = this.#chips.querySelector<HTMLElement>("button");
      (next ?? element("filter-open")).focus();
    }
  }

  /** Shows why the log cannot be filtered; null if it can. */
  showRefusal(why: string | null): void {
    document.body.dataset["filters"] = why === null ? "on" : "off";
    setText(element("filters-off"), why === null ? "" : `Filters are unavailable: ${why}.`);
  }

  /** The filters are applied. */
  accept(): void {
    this.#written = undefined;
  }

  /** Some filters were refused. The one that has just been submitted can be corrected. */
  refuse(refused: readonly string[], message: string, at: Misplaced | undefined): void {
    const written = this.#written;
    this.#written = undefined;
    if (written === undefined || (at !== undefined && refused[at.filter] !== written.text)) {
      return;
    }
    this.#open(written.text, written.changed, at?.column);
    setText(element("filter-problem"), message);
    this.#text.setAttribute("aria-invalid", "true");
  }

  #submit(text: string): void {
    if (text === "") {
      return;
    }
    const at = this.#changed ?? this.#filters.length;
    const filters = [...this.#filters.slice(0, at), text, ...this.#filters.slice(at + 1)];
    const written = { text, changed: this.#changed };
    this.#close();
    // The change clears what was written before.
    this.#events.change([...new Set(filters)]);
    this.#written = written;
  }

  /** Opens the form with a text that replaces a filter, or is a new one. */
  #open(text: string, changed: number | undefined, column?: number): void {
    this.#menu.open = true;
    this.#changed = changed;
    this.#text.value = text;
    setText(element("filter-submit"), changed === undefined ? "Add" : "Change");
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
      this.#open(this.#filters[place] ?? "", place);
    }
  }
}

function chip(filter: string): HTMLLIElement {
  const item = create("li", "chip");
  item.dataset["testid"] = "filter";
  const change = create("button", "chip-change", visible(filter));
  change.type = "button";
  change.title = `${visible(filter)}\nClick to change it`;
  const remove = create("button", "chip-remove", "×");
  remove.type = "button";
  remove.setAttribute("aria-label", `Remove the filter ${visible(filter)}`);
  item.append(change, remove);
  return item;
}
