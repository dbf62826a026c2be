// A chart of the last minute: a line for each client.

import uPlot from "uplot";
import { element } from "../shared/page.js";

/** Number of samples shown, one per second. */
const SAMPLES = 60;
const HEIGHT = 150;
/** The minimum upper end of the scale. */
const TOP_MIN = 1;

export class LineChart {
  readonly #frame: HTMLElement;
  readonly #plot: uPlot;
  readonly #lines: (number | null)[][];
  readonly #times = Array.from({ length: SAMPLES }, (_, i) => i - SAMPLES + 1);

  /** Draws into the element marked `id`; `colours` are names of CSS properties, one per line. */
  constructor(id: string, colours: readonly string[]) {
    this.#frame = element(id);
    this.#lines = colours.map(() => this.#times.map(() => null));
    this.#plot = new uPlot(this.#options(colours), [this.#times, ...this.#lines], this.#frame);
    new ResizeObserver(() => this.#fit()).observe(this.#frame);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.#plot.redraw(false, true);
    });
  }

  /** Appends one sample to each line. */
  push(values: readonly (number | null)[]): void {
    this.#lines.forEach((line, i) => {
      line.shift();
      line.push(values[i] ?? null);
    });
    this.#plot.setData([this.#times, ...this.#lines]);
  }

  #options(colours: readonly string[]): uPlot.Options {
    const muted = () => cssColour("--ink-soft");
    const font = `12px ${getComputedStyle(document.body).fontFamily}`;
    return {
      width: this.#frame.clientWidth || 300,
      height: HEIGHT,
      padding: [8, 8, 0, 0],
      legend: { show: false },
      cursor: { show: false },
      scales: {
        x: { time: false, range: () => [1 - SAMPLES, 0] },
        y: { range: (_plot, _min, max) => [0, Math.max(TOP_MIN, (max ?? 0) * 1.15)] },
      },
      axes: [
        {
          stroke: muted,
          font,
          size: 26,
          grid: { show: false },
          ticks: { show: false },
          splits: () => [1 - SAMPLES, -30, 0],
          values: () => ["", "30 s ago", ""],
        },
        {
          stroke: muted,
          font,
          size: 44,
          space: 36,
          grid: { stroke: () => cssColour("--line"), width: 1 },
          ticks: { show: false },
        },
      ],
      series: [
        {},
        ...colours.map((colour): uPlot.Series => ({
          stroke: () => cssColour(colour),
          width: 2,
          points: { show: false },
        })),
      ],
    };
  }

  #fit(): void {
    const width = this.#frame.clientWidth;
    if (width > 0) {
      this.#plot.setSize({ width, height: HEIGHT });
    }
  }
}

function cssColour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
