// Fields for the ends of the time range and of the range that it is compared with.

import { element, setText } from "../shared/page.js";
import type { TimeRange } from "./query.js";
import { comparedRange, type Comparison, type View } from "./view.js";

interface RangeBarEvents {
  range(range: TimeRange | null): void;
  comparison(comparison: Comparison): void;
}

export class RangeBar {
  readonly #shown = ["range-from", "range-until"].map(input);
  readonly #compared = ["compare-from", "compare-until"].map(input);
  readonly #kind = element("compare") as HTMLSelectElement;
  readonly #events: RangeBarEvents;
  #view: View | undefined;
  /** From the first request to the last; the fields show this while no range is chosen. */
  #whole: TimeRange | null = null;

  constructor(events: RangeBarEvents) {
    this.#events = events;
    for (const field of this.#shown) {
      field.addEventListener("change", () => this.#handleRange());
    }
    for (const field of this.#compared) {
      field.addEventListener("change", () => this.#handleCompared());
    }
    this.#kind.addEventListener("change", () => this.#handleKind());
    element("whole-log").addEventListener("click", () => events.range(null));
  }

  /** Shows the view; `whole` is the span of the log as far as it is known. */
  show(view: View, whole: TimeRange | null): void {
    this.#view = view;
    this.#whole = whole;
    write(this.#shown, view.range ?? whole);
    write(this.#compared, comparedRange(view));
    this.#kind.value = view.comparison.kind;
    const wholeLog = element("whole-log") as HTMLButtonElement;
    if (view.range === null && document.activeElement === wholeLog) {
      element("overview-strip").focus({ preventScroll: true }); // A disabled button loses it.
    }
    wholeLog.disabled = view.range === null;
    element("compare-range").classList.toggle("unused", view.comparison.kind === "none");
    for (const field of this.#compared) {
      field.disabled = view.comparison.kind !== "range";
    }
    setText(element("compare-note"), noteOf(view));
  }

  #handleRange(): void {
    const range = read(this.#shown);
    if (range !== null) {
      this.#events.range(range);
    }
  }

  #handleCompared(): void {
    const range = read(this.#compared);
    if (range !== null) {
      this.#events.comparison({ kind: "range", range });
    }
  }

  #handleKind(): void {
    const kind = this.#kind.value;
    if (kind !== "range") {
      this.#events.comparison({ kind: kind === "previous" ? "previous" : "none" });
      return;
    }
    // It starts as the previous period and can be moved.
    const shown = this.#view?.range ?? this.#whole;
    const previous =
      this.#view && comparedRange({ ...this.#view, comparison: { kind: "previous" } });
    const range = previous ?? shown;
    if (range !== null) {
      this.#events.comparison({ kind: "range", range });
    }
  }
}

function noteOf({ range, comparison }: View): string {
  if (comparison.kind === "previous" && range === null) {
    return "Choose a range first: there is no period before the whole log.";
  }
  return comparison.kind === "range" ? "Drag on the strip with Shift to move it." : "";
}

function input(id: string): HTMLInputElement {
  return element(id) as HTMLInputElement;
}

function write([from, until]: HTMLInputElement[], range: TimeRange | null): void {
  const text = (at: number) => new Date(at * 1_000).toISOString().slice(0, 19).replace("T", " ");
  const fields = [
    [from, range === null ? "" : text(range.from)],
    [until, range === null ? "" : text(range.until)],
  ] as const;
  for (const [field, value] of fields) {
    // Do not overwrite a field that has the focus.
    if (field !== undefined && field !== document.activeElement && field.value !== value) {
      field.value = value;
    }
  }
}

function read([from, until]: HTMLInputElement[]): TimeRange | null {
  const range = { from: moment(from), until: moment(until) };
  for (const [field, at] of [
    [from, range.from],
    [until, range.until],
  ] as const) {
    field?.setCustomValidity(Number.isNaN(at) ? "Enter a time such as 2021-01-22 01:47:05." : "");
    field?.reportValidity();
  }
  if (range.until <= range.from) {
    until?.setCustomValidity("The end must be later than the beginning.");
    until?.reportValidity();
  }
  return range.until > range.from ? range : null;
}

/** Parses a time in UTC, with optional seconds; NaN if it is invalid. */
function moment(field: HTMLInputElement | undefined): number {
  const [, day, clock] =
    /^\s*(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d(?::\d\d)?)\s*$/.exec(field?.value ?? "") ?? [];
  return Date.parse(`${day ?? ""}T${clock ?? ""}Z`) / 1_000;
}
