// The timelines: figures of the last hour or day, one below the other, with a shared cursor.

import uPlot from "uplot";
import { axisStyle, cssColour, gridStyle, keepFitting, shading } from "../shared/chart.js";
import { compact, humanBytes, milliseconds, utcClock, utcDay } from "../shared/format.js";
import { create, element, setText } from "../shared/page.js";
import { timeLabels } from "../shared/time-axis.js";
import type { AdminApi } from "../shared/admin-api.js";
import { type Figure, Series } from "./series.js";
import type { SeriesView } from "./views.js";

const HEIGHT = 92;
/** The height of the axis below the last chart. */
const AXIS_HEIGHT = 44;
/** The shortest time shown, in seconds. */
const SPAN_MIN_S = 10;
/** The minimum number of pixels between two labels of times. */
const LABEL_SPACE = 76;

interface Line {
  figure: Figure;
  label: string;
  colour: string;
}

interface Chart {
  title: string;
  lines: Line[];
  format(value: number): string;
  /** The minimum upper end of the scale. */
  topMin: number;
}

const CHARTS: Chart[] = [
  {
    title: "Messages per second",
    lines: [
      { figure: "deliveries_per_s", label: "delivered", colour: "--line-1" },
      { figure: "publications_per_s", label: "published", colour: "--line-2" },
    ],
    format: (value) => compact(Math.round(value)),
    topMin: 4,
  },
  {
    title: "Delay of deliveries",
    lines: [{ figure: "delay_p99_ms", label: "p99", colour: "--line-3" }],
    format: (value) => (value < 10 ? milliseconds(value) : `${compact(Math.round(value))} ms`),
    topMin: 0.2,
  },
  {
    title: "Missed",
    lines: [
      { figure: "gaps", label: "gaps of the broker", colour: "--bad" },
      { figure: "dropped", label: "messages missed by slow clients", colour: "--line-2" },
    ],
    format: (value) => compact(value),
    topMin: 4,
  },
  {
    title: "Memory",
    lines: [
      { figure: "resident_bytes", label: "of the process", colour: "--line-1" },
      { figure: "memory_bytes", label: "of the budget", colour: "--line-2" },
    ],
    format: (value) => humanBytes(Math.round(value)),
    topMin: 4e6,
  },
  {
    title: "Clients",
    lines: [{ figure: "clients", label: "connected", colour: "--line-1" }],
    format: (value) => compact(value),
    topMin: 4,
  },
];
const FIGURES = CHARTS.flatMap(({ lines }) => lines.map(({ figure }) => figure));

/** What can be shown, by the value of its button. */
const SPANS = {
  hour: { step: "second", stepS: 1, points: 3_600, every: 1 },
  day: { step: "minute", stepS: 60, points: 1_440, every: 10 },
} as const;
type SpanName = keyof typeof SPANS;

export class Timelines {
  readonly #api: AdminApi;
  readonly #frame = element("timelines");
  readonly #time = element("timelines-time");
  readonly #series = {
    hour: new Series(SPANS.hour.stepS, SPANS.hour.points),
    day: new Series(SPANS.day.stepS, SPANS.day.points),
  };
  readonly #plots: { plot: uPlot; values: HTMLElement[]; canvas: HTMLElement; chart: Chart }[];
  #span: SpanName = "hour";
  #rounds = 0;
  #node = "";
  #times: number[] = [];

  constructor(api: AdminApi) {
    this.#api = api;
    this.#plots = CHARTS.map((chart, i) => this.#draw(chart, i === CHARTS.length - 1));
    for (const name of Object.keys(SPANS) as SpanName[]) {
      element(`span-${name}`).addEventListener("change", () => this.#choose(name));
    }
    this.#frame.addEventListener("keydown", (event) => this.#moveCursor(event));
    this.#frame.addEventListener("blur", () => this.#setCursor(null));
  }

  /** Requests new points from the node with this ID. */
  async refresh(node: string): Promise<void> {
    if (node !== this.#node) {
      // Another process answers, which has its own history.
      this.#node = node;
      this.#series.hour.clear();
      this.#series.day.clear();
      this.#rounds = 0;
    }
    const { step, every } = SPANS[this.#span];
    this.#rounds += 1;
    if ((this.#rounds - 1) % every !== 0) {
      return;
    }
    const series = this.#series[this.#span];
    series.add(await this.#api.get<SeriesView>(`series?step=${step}&after=${series.afterMs}`));
    this.#show();
  }

  #choose(span: SpanName): void {
    this.#span = span;
    this.#rounds = 0;
    this.#show();
    void this.refresh(this.#node).catch(() => {});
  }

  #show(): void {
    const series = this.#series[this.#span];
    const { times, columns } = series.columns(FIGURES);
    this.#times = times;
    let next = 0;
    for (const { plot, chart } of this.#plots) {
      const own = columns.slice(next, next + chart.lines.length);
      next += chart.lines.length;
      plot.setData([times, ...own]);
    }
    this.#frame.dataset["points"] = String(times.length);
    this.#frame.dataset["outages"] = String(series.outages().length);
    this.#showValues();
  }

  #draw(chart: Chart, isLast: boolean) {
    const frame = create("figure", "timeline");
    const head = create("figcaption", "timeline-head");
    const values = chart.lines.map(({ label, colour }) => {
      const swatch = create("span", "timeline-swatch");
      swatch.style.background = `var(${colour})`;
      const value = create("span", "timeline-value", "–");
      const entry = create("span", "note timeline-entry");
      entry.append(swatch, `${label} `, value);
      return value;
    });
    const entries = create("span", "timeline-entries");
    entries.append(...values.map((value) => value.parentElement as HTMLElement));
    head.append(create("h3", "", chart.title), entries);
    const canvas = create("div", "timeline-chart");
    canvas.setAttribute("role", "img");
    frame.append(head, canvas);
    this.#frame.append(frame);
    const plot = new uPlot(
      this.#options(chart, isLast, canvas),
      [[], ...chart.lines.map(() => [])],
      canvas,
    );
    keepFitting(plot, canvas);
    return { plot, values, canvas, chart };
  }

  #options(chart: Chart, isLast: boolean, frame: HTMLElement): uPlot.Options {
    return {
      width: frame.clientWidth || 300,
      height: HEIGHT + (isLast ? AXIS_HEIGHT : 0),
      // The last label of the time axis needs space.
      padding: [6, 28, 6, 0],
      legend: { show: false },
      cursor: {
        sync: { key: "timelines" },
        drag: { x: false, y: false },
        y: false,
        points: { size: 7 },
      },
      plugins: [shading(() => this.#series[this.#span].outages())],
      scales: {
        x: { range: () => this.#range() },
        y: { range: (_plot, _min, max) => [0, Math.max(chart.topMin, (max ?? 0) * 1.1)] },
      },
      axes: [
        {
          ...axisStyle(),
          size: isLast ? AXIS_HEIGHT : 0,
          space: LABEL_SPACE,
          grid: gridStyle(),
          values: (_plot, splits, _axis, _space, step) => (isLast ? timeLabels(splits, step) : []),
        },
        {
          ...axisStyle(),
          size: 68,
          space: 30,
          grid: gridStyle(),
          values: (_plot, splits) =>
            splits.map((value) => (value === 0 ? "0" : chart.format(value))),
        },
      ],
      series: [
        {},
        ...chart.lines.map(({ colour }): uPlot.Series => ({
          stroke: () => cssColour(colour),
          width: 1.5,
          points: { size: 4 },
        })),
      ],
      hooks: { setCursor: [() => this.#showValues()] },
    };
  }

  /** Returns the times shown: as much as is known, and at least ten seconds. */
  #range(): [number, number] {
    const now = this.#times.at(-1) ?? Date.now() / 1_000;
    const { stepS, points } = SPANS[this.#span];
    const first = Math.max(this.#times[0] ?? now, now - stepS * points);
    return [Math.min(first, now - SPAN_MIN_S), now];
  }

  /** Shows the figures at the cursor, or the newest ones. */
  #showValues(): void {
    const cursor = this.#plots?.[0]?.plot.cursor.idx ?? null;
    const at = cursor ?? this.#times.length - 1;
    const time = this.#times[at];
    const text =
      time === undefined
        ? "nothing recorded yet"
        : `${cursor === null ? "now, " : ""}${utcDay(time)} ${utcClock(time, true)} UTC`;
    setText(this.#time, text);
    for (const { plot, values, canvas, chart } of this.#plots ?? []) {
      const texts = values.map((value, i) => {
        const figure = plot.data[i + 1]?.[at];
        setText(value, typeof figure === "number" ? chart.format(figure) : "–");
        return `${chart.lines[i]?.label ?? ""} ${value.textContent}`;
      });
      canvas.setAttribute("aria-label", `${chart.title}: ${texts.join(", ")}`);
    }
  }

  /** The arrow keys move the cursor by a point, with Shift by a twentieth of what is shown. */
  #moveCursor(event: KeyboardEvent): void {
    const direction = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") {
      this.#setCursor(null);
    }
    if (direction === undefined || this.#times.length === 0) {
      return;
    }
    event.preventDefault();
    const last = this.#times.length - 1;
    const from = this.#plots[0]?.plot.cursor.idx ?? last;
    const step = event.shiftKey ? Math.ceil(this.#times.length / 20) : 1;
    this.#setCursor(Math.min(last, Math.max(0, from + direction * step)));
  }

  #setCursor(index: number | null): void {
    for (const { plot } of this.#plots) {
      const time = index === null ? undefined : this.#times[index];
      const left = time === undefined ? -10 : plot.valToPos(time, "x");
      plot.setCursor({ left, top: left < 0 ? -10 : 0 });
    }
  }
}
