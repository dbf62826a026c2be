// Percentiles of the durations over time, as lines on a logarithmic scale.

import uPlot from "uplot";
import { percentage } from "../shared/format.js";
import { create, element, setText } from "../shared/page.js";
import { timeLabels } from "../shared/time-axis.js";
import { cssColour } from "./colours.js";
import type { SideQuestion } from "./enquiry.js";
import type { Figures } from "./figures-view.js";
import { decades, type LatencySeries, PERCENTILES, readoutOf } from "./latency-series.js";
import type { Answer } from "./protocol.js";
import { PLOT_RIGHT } from "./requests-chart.js";
import { type SidePanel, StandingQuestion } from "./standing-question.js";
import { queryOf, type View } from "./view.js";

const HEIGHT = 260;
const COLOURS = ["--layer-1", "--layer-3", "--layer-2", "--layer-5"] as const;

export class LatencyOverTime implements SidePanel {
  readonly #panel = element("latency-time");
  readonly #frame = element("latency-chart");
  readonly #readout = element("latency-readout");
  readonly #question: StandingQuestion;
  readonly #plot: uPlot;
  #view: View | undefined;
  #figures: Figures | undefined;
  #series: LatencySeries | undefined;
  /** The bucket under the cursor of the keyboard. */
  #at: number | undefined;

  constructor(ask: (question: SideQuestion | null) => void) {
    this.#question = new StandingQuestion(ask);
    const nothing: uPlot.AlignedData = [[], ...PERCENTILES.map(() => [])];
    this.#plot = new uPlot(this.#options(), nothing, this.#frame);
    for (const [i, { label }] of PERCENTILES.entries()) {
      const key = create("li", "latency-key", label);
      key.style.setProperty("--swatch", `var(${COLOURS[i] ?? ""})`);
      element("latency-legend").append(key);
    }
    new ResizeObserver(() => this.#fit()).observe(this.#frame);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.#plot.redraw(false, true);
    });
    this.#frame.addEventListener("keydown", (event) => this.#handleKey(event));
    this.#frame.addEventListener("blur", () => this.#moveTo(undefined));
  }

  /** Another view was chosen. */
  showView(view: View): void {
    this.#view = view;
    this.#ask();
  }

  /** Figures of the view have arrived. */
  handleFigures(figures: Figures): void {
    this.#figures = figures;
    this.#panel.hidden = figures.whole.latency === null;
    this.#ask();
  }

  show(answer: Answer): void {
    if (answer.type !== "latency") {
      return;
    }
    const series = answer.latency;
    this.#series = series;
    const times = series.counts.map((_, i) => series.start + (i + 0.5) * series.bucket_seconds);
    this.#plot.setData([times, ...PERCENTILES.map(({ list }) => series[list])]);
    const isEmpty = series.counts.every((count) => count === 0);
    setText(element("latency-time-empty"), isEmpty ? "No request matches the filters." : "");
    setText(
      element("latency-time-note"),
      isEmpty ? "" : `to ± ${percentage(series.error, 1)} · logarithmic scale`,
    );
    this.#moveTo(undefined);
  }

  showProgress(fraction: number): void {
    setText(element("latency-time-note"), `Measuring … ${Math.floor(100 * fraction)} %`);
  }

  refuse(why: string): void {
    this.#series = undefined;
    this.#plot.setData([[], ...PERCENTILES.map(() => [])]);
    setText(element("latency-time-empty"), why);
    setText(element("latency-time-note"), "");
    this.#moveTo(undefined);
  }

  clear(): void {
    this.#figures = undefined;
    this.#panel.hidden = true;
    this.#question.want(null, 0, false);
    this.refuse("");
  }

  #ask(): void {
    const figures = this.#figures;
    if (figures === undefined || figures.whole.latency === null || this.#view === undefined) {
      return;
    }
    const { from, until, filters } = queryOf(this.#view);
    const query = { from, until, filters };
    this.#question.want({ type: "latency", query }, figures.whole.requests, figures.isFinal);
  }

  #options(): uPlot.Options {
    const muted = () => cssColour("--ink-soft");
    const font = () => `12px ${getComputedStyle(document.body).fontFamily}`;
    const lines = { stroke: () => cssColour("--line"), width: 1 };
    return {
      width: this.#frame.clientWidth || 300,
      height: HEIGHT,
      padding: [10, PLOT_RIGHT, 0, 0],
      tzDate: (at) => uPlot.tzDate(new Date(at * 1_000), "Etc/UTC"),
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
      scales: {
        x: { time: true, range: (_plot, least, most) => this.#axis(least, most) },
        y: { distr: 3, range: (_plot, least, most) => decades(least, most) },
      },
      axes: [
        {
          stroke: muted,
          font: font(),
          size: 46,
          space: 72,
          grid: { show: false },
          ticks: { ...lines, size: 5 },
          values: (_plot, marks, _axis, _space, step) => timeLabels(marks, step),
        },
        {
          stroke: muted,
          font: font(),
          size: 64,
          grid: lines,
          ticks: { show: false },
          splits: (plot) => powers(plot.scales["y"]?.min ?? 1, plot.scales["y"]?.max ?? 10),
          values: (_plot, marks) => marks.map((mark) => axisLabel(mark)),
        },
      ],
      series: [
        {},
        ...PERCENTILES.map((_, i) => ({
          stroke: () => cssColour(COLOURS[i] ?? "--ink"),
          width: 1.5,
          spanGaps: false,
          points: { size: 4 },
        })),
      ],
      hooks: { setCursor: [() => this.#showReadout()] },
    };
  }

  /** The axis covers all buckets, also those without requests. */
  #axis(least: number, most: number): [number, number] {
    const series = this.#series;
    return series === undefined || series.counts.length === 0
      ? [least, most]
      : [series.start, series.start + series.counts.length * series.bucket_seconds];
  }

  #handleKey(event: KeyboardEvent): void {
    const last = (this.#series?.counts.length ?? 0) - 1;
    const target = {
      ArrowLeft: Math.max(0, (this.#at ?? last + 1) - 1),
      ArrowRight: Math.min(last, (this.#at ?? -1) + 1),
      Home: 0,
      End: last,
    }[event.key];
    if (target !== undefined && last >= 0) {
      event.preventDefault();
      this.#moveTo(target);
    }
  }

  #moveTo(at: number | undefined): void {
    this.#at = at;
    const time = at === undefined ? undefined : this.#plot.data[0][at];
    const left = time === undefined ? -10 : this.#plot.valToPos(time, "x");
    this.#plot.setCursor({ left, top: left < 0 ? -10 : 0 });
  }

  #showReadout(): void {
    const series = this.#series;
    const at = this.#plot.cursor.idx;
    const isInside = (this.#plot.cursor.left ?? -1) >= 0;
    if (series === undefined || !isInside || at === null || at === undefined) {
      setText(
        this.#readout,
        "Times in UTC. Point at the chart, or use the arrow keys, for figures.",
      );
      return;
    }
    setText(this.#readout, readoutOf(series, at));
  }

  #fit(): void {
    const width = this.#frame.clientWidth;
    if (width > 0) {
      this.#plot.setSize({ width, height: HEIGHT });
    }
  }
}

function powers(low: number, high: number): number[] {
  const count = Math.round(Math.log10(high / low));
  return Array.from({ length: count + 1 }, (_, i) => low * 10 ** i);
}

/** Labels a power of ten without decimals: 10 ms. */
function axisLabel(us: number): string {
  const [value, unit] = us < 1_000 ? [us, "µs"] : us < 1e6 ? [us / 1_000, "ms"] : [us / 1e6, "s"];
  return `${Math.round(value)} ${unit}`;
}
