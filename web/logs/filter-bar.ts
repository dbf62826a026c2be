// The filters in force as chips, each to be removed, and a form to add one by hand.

import { create, element, setText } from "../shared/page.js";
import {
  type Condition,
  type Dimension,
  DIMENSION_NAME,
  DIMENSIONS,
  sameCondition,
} from "./query.js";

interface FilterBarEvents {
  add(condition: Condition): void;
  remove(condition: Condition): void;
  clear(): void;
}

export class FilterBar {
  readonly #chips = element("filters");
  readonly #events: FilterBarEvents;
  #conditions: Condition[] = [];

  constructor(events: FilterBarEvents) {
    this.#events = events;
    const dimension = element("filter-dimension") as HTMLSelectElement;
    for (const name of DIMENSIONS) {
      const option = create("option", "", DIMENSION_NAME[name]);
      option.value = name;
      dimension.append(option);
    }
    element("filter-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit(dimension.value as Dimension);
    });
    element("clear-filters").addEventListener("click", () => events.clear());
    this.#chips.addEventListener("click", ({ target }) => this.#handleRemoval(target as Element));
  }

  show(conditions: readonly Condition[]): void {
    this.#conditions = [...conditions];
    const had = this.#chips.contains(document.activeElement);
    this.#chips.replaceChildren(...conditions.map(chip));
    setText(
      element("filters-none"),
      conditions.length === 0 ? "No filter: click any value below." : "",
    );
    element("clear-filters").hidden = conditions.length === 0;
    if (had) {
      const next = this.#chips.querySelector<HTMLElement>("button");
      (next ?? element("filter-open")).focus();
    }
  }

  #submit(dimension: Dimension): void {
    const value = element("filter-value") as HTMLInputElement;
    const exclude = (element("filter-exclude") as HTMLSelectElement).value === "exclude";
    if (value.value.trim() !== "") {
      this.#events.add({ dimension, value: value.value.trim(), exclude });
      value.value = "";
      (element("add-filter") as HTMLDetailsElement).open = false;
      element("filter-open").focus();
    }
  }

  #handleRemoval(target: Element): void {
    const item = target.closest("li");
    const place = item === null ? -1 : [...this.#chips.children].indexOf(item);
    const condition = this.#conditions.find((_, i) => i === place);
    if (condition !== undefined && target.closest("button") !== null) {
      this.#events.remove(condition);
    }
  }
}

function chip(condition: Condition): HTMLLIElement {
  const { dimension, value, exclude } = condition;
  const item = create("li", exclude ? "chip chip-exclude" : "chip");
  item.dataset["testid"] = "filter";
  const label = create("span", "chip-label");
  const verb = exclude ? "is not" : "is";
  label.append(
    create("span", "chip-dimension", `${DIMENSION_NAME[dimension]} ${verb}`),
    create("span", "chip-value", value === "" ? "(none)" : value),
  );
  const remove = create("button", "chip-remove", "×");
  remove.type = "button";
  remove.setAttribute(
    "aria-label",
    `Remove the filter ${DIMENSION_NAME[dimension]} ${verb} ${value}`,
  );
  item.append(label, remove);
  return item;
}

/** Returns the conditions without `condition`. */
export function without(conditions: readonly Condition[], condition: Condition): Condition[] {
  return conditions.filter((it) => !sameCondition(it, condition));
}
