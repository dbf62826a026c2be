// How long requests took: percentiles, and a histogram.

import { grouped, percentage } from "../shared/format.js";
import { create, element, setFigure, setText } from "../shared/page.js";
import { changeOf } from "./change.js";
import type { Latency, Summary } from "./summary.js";

const PERCENTILES = [
  ["p50", "50 % took at most", "p50_us"],
  ["p90", "90 % took at most", "p90_us"],
  ["p99", "99 % took at most", "p99_us"],
  ["p999", "99.9 % took at most", "p999_us"],
  ["max", "Slowest", "max_us"],
] as const;
/** Number of columns of the histogram; their bounds have a constant ratio. */
const COLUMNS = 48;

export class LatencyPanel {
  readonly #columns: HTMLElement[] = [];

  constructor() {
    for (const [id, label] of PERCENTILES) {
      const pair = create("div");
      const figure = create("dd", "", "–");
      figure.dataset["testid"] = `latency-${id}`;
      const change = create("dd", "latency-change");
      change.dataset["testid"] = `latency-${id}-change`;
      pair.append(create("dt", "", label), figure, change);
      element("latency").append(pair);
    }
    for (let i = 0; i < COLUMNS; i += 1) {
      const column = create("span", "latency-column");
      element("latency-columns").append(column);
      this.#columns.push(column);
    }
    this.clear();
  }

  show({ latency, requests }: Summary, compared: Summary | undefined): void {
    element("panel-latency").classList.toggle("panel-nothing", latency === null);
    for (const [id, , field] of PERCENTILES) {
      const now = latency?.[field];
      const before = compared?.latency?.[field];
      setFigure(element(`latency-${id}`), now === undefined ? "–" : duration(now), now ?? 0);
      const change =
        now === undefined || before === undefined
          ? ""
          : `was ${duration(before)}, ${changeOf(now, before)}`;
      setText(element(`latency-${id}-change`), change);
    }
    setText(element("latency-note"), latency === null ? "" : noteOf(latency, requests));
    setText(element("latency-empty"), latency === null ? whyNone(requests) : "");
    this.#draw(latency);
  }

  clear(): void {
    for (const [id] of PERCENTILES) {
      setText(element(`latency-${id}`), "–");
      setText(element(`latency-${id}-change`), "");
    }
    setText(element("latency-note"), "");
    setText(element("latency-empty"), "");
    this.#draw(null);
  }

  #draw(latency: Latency | null): void {
    const columns = spread(latency?.buckets ?? [], COLUMNS);
    const most = columns.reduce((a, { count }) => Math.max(a, count), 0);
    this.#columns.forEach((element, i) => {
      const { count, fromUs, toUs } = columns[i] ?? { count: 0, fromUs: 0, toUs: 0 };
      element.style.height = count === 0 ? "0" : `max(2px, ${(100 * count) / most}%)`;
      element.title =
        count === 0 ? "" : `${duration(fromUs)} to ${duration(toUs)}: ${grouped(count)} requests`;
    });
    const [first, last] = [columns[0], columns.at(-1)];
    setText(element("latency-least"), first === undefined ? "" : duration(first.fromUs));
    setText(element("latency-most"), last === undefined ? "" : duration(last.toUs));
  }
}

function noteOf({ count, error }: Latency, requests: number): string {
  const of = count === requests ? "" : ` of ${grouped(requests)}`;
  const bound = error === 0 ? "exact" : `percentiles to ± ${percentage(error, 1)}`;
  return `${grouped(count)}${of} requests · ${bound}`;
}

function whyNone(requests: number): string {
  return requests === 0
    ? "No request matches the filters."
    : "The log format has no duration; nginx writes it as $request_time, Apache as %D.";
}

/** Formats microseconds with three digits: 850 µs, 12.4 ms, 3.02 s. */
export function duration(us: number): string {
  const [value, unit] = us < 1_000 ? [us, "µs"] : us < 1e6 ? [us / 1_000, "ms"] : [us / 1e6, "s"];
  const digits = value >= 100 || unit === "µs" ? 0 : value >= 10 ? 1 : 2;
  return `${digits === 0 ? grouped(value) : value.toFixed(digits)} ${unit}`;
}

interface Column {
  fromUs: number;
  toUs: number;
  count: number;
}

/** Merges buckets into `columns` with a constant ratio between the lowest and the highest bound. */
export function spread(buckets: readonly [number, number][], columns: number): Column[] {
  const filled = buckets.filter(([, count]) => count > 0);
  const [first, last] = [filled[0], filled.at(-1)];
  if (first === undefined || last === undefined) {
    return [];
  }
  const least = Math.max(1, first[0]) / 1.1;
  const ratio = Math.log(Math.max(last[0], least * 2) / least) / columns;
  const edge = (i: number) => least * Math.exp(ratio * i);
  const made = Array.from({ length: columns }, (_, i) => ({
    fromUs: edge(i),
    toUs: edge(i + 1),
    count: 0,
  }));
  for (const [upperUs, count] of filled) {
    const place = Math.ceil(Math.log(Math.max(least, upperUs) / least) / ratio - 1e-9) - 1;
    const column = made[Math.max(0, Math.min(columns - 1, place))];
    if (column !== undefined) {
      column.count += count;
    }
  }
  return made;
}
