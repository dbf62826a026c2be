// The legend of the histogram: what each colour means, its total, and a button to hide it.

import { grouped } from "../shared/format.js";
import { create, element, setFigure, setText } from "../shared/page.js";
import { colourName } from "./colours.js";
import { LAYERS_MAX, layersOf, type Split, total } from "./stacking.js";
import { CLASS_MEANING, STATUS_CLASSES, type StatusClass } from "./status-classes.js";
import type { Summary } from "./summary.js";

interface Key {
  item: HTMLElement;
  button: HTMLButtonElement;
  swatch: HTMLElement;
  name: HTMLElement;
  total: HTMLElement;
}

export class ChartLegend {
  readonly #hidden = new Set<string>();
  readonly #keys: Key[] = [];
  readonly #toggled: () => void;
  #split: Split = "class";

  /** `toggled` is called when an entry is switched. */
  constructor(toggled: () => void) {
    this.#toggled = toggled;
    for (let i = 0; i < LAYERS_MAX; i += 1) {
      this.#keys.push(this.#key());
    }
    this.show("class", undefined);
  }

  isShown(name: string): boolean {
    return !this.#hidden.has(name);
  }

  /** Shows the totals of a summary, or placeholders if there is none yet. */
  show(split: Split, summary: Summary | undefined): void {
    if (split !== this.#split) {
      this.#hidden.clear();
      this.#split = split;
    }
    const entries = entriesOf(split, summary);
    this.#keys.forEach((key, place) => {
      const entry = entries[place];
      key.item.hidden = entry === undefined;
      if (entry !== undefined) {
        this.#fill(key, entry, place);
      }
    });
  }

  #fill(key: Key, [name, count]: [string, number | undefined], place: number): void {
    setText(key.name, name);
    key.total.dataset["testid"] = this.#split === "class" ? `class-${name}` : `layer-${name}`;
    setFigure(key.total, count === undefined ? "–" : grouped(count), count ?? 0);
    key.swatch.style.setProperty("--swatch", `var(${colourName(this.#split, name, place)})`);
    key.button.title = this.#split === "class" ? CLASS_MEANING[name as StatusClass] : "";
    key.button.setAttribute("aria-pressed", String(this.isShown(name)));
  }

  #key(): Key {
    const item = create("li");
    const button = create("button", "legend-key");
    button.type = "button";
    const swatch = create("span", "swatch");
    swatch.setAttribute("aria-hidden", "true");
    const name = create("span", "legend-name");
    const figure = create("span", "legend-total", "–");
    button.append(swatch, name, figure);
    button.addEventListener("click", () => this.#toggle(name.textContent ?? ""));
    item.append(button);
    element("chart-legend").append(item);
    return { item, button, swatch, name, total: figure };
  }

  #toggle(name: string): void {
    if (!this.#hidden.delete(name)) {
      this.#hidden.add(name);
    }
    const key = this.#keys.find((it) => it.name.textContent === name);
    key?.button.setAttribute("aria-pressed", String(this.isShown(name)));
    this.#toggled();
  }
}

function entriesOf(split: Split, summary: Summary | undefined): [string, number | undefined][] {
  if (split === "class") {
    return STATUS_CLASSES.map((name) => [
      name,
      summary === undefined ? undefined : (summary.status_classes[name] ?? 0),
    ]);
  }
  return summary === undefined
    ? []
    : layersOf(summary.timeline, split).layers.map(({ name, counts }) => [name, total(counts)]);
}
