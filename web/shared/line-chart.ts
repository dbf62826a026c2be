// A chart of the last minute: a line for each of several figures. Until a minute has passed, it
// shows the time since the page was opened, so that it is never almost empty.

import uPlot from "uplot";
import { axisStyle, cssColour, gridStyle, keepFitting, type Shade, shading } from "./chart.js";
import { element } from "./page.js";

/** Number of samples shown, one per second. */
const SAMPLES = 60;
/** The shortest time shown. */
const SAMPLES_MIN = 5;
const HEIGHT = 150;
/** The minimum upper end of the scale. */
const TOP_MIN = 1;

export class LineChart {
  readonly #plot: uPlot;
  readonly #lines: (number | null)[][];
  readonly #outages: boolean[] = [];
  readonly #times = Array.from({ length: SAMPLES }, (_, i) => i - SAMPLES + 1);

  /**
   * Draws into the element marked `id`; `colours` are names of CSS properties, one per line.
   * `format` returns the labels of the y axis.
   */
  constructor(id: string, colours: readonly string[], format?: (value: number) => string) {
    const frame = element(id);
    const axis: uPlot.Axis =
      format === undefined
        ? { size: 44 }
        : { size: 68, values: (_plot, splits) => splits.map((value) => format(value)) };
    this.#lines = colours.map(() => this.#times.map(() => null));
    const options = this.#options(colours, axis, frame.clientWidth || 300);
    this.#plot = new uPlot(options, [this.#times, ...this.#lines], frame);
    keepFitting(this.#plot, frame);
  }

  /** Appends one sample to each line; `isOutage` if the broker was unreachable. */
  push(values: readonly (number | null)[], isOutage: boolean): void {
    this.#lines.forEach((line, i) => {
      line.shift();
      line.push(values[i] ?? null);
    });
    this.#outages.push(isOutage);
    this.#outages.splice(0, this.#outages.length - SAMPLES);
    this.#plot.setData([this.#times, ...this.#lines]);
  }

  /** The age of the oldest sample shown, in seconds. */
  get #age(): number {
    return Math.min(SAMPLES, Math.max(SAMPLES_MIN, this.#outages.length)) - 1;
  }

  #shades(): Shade[] {
    const last = this.#outages.length - 1;
    return this.#outages.flatMap((isOutage, i) =>
      isOutage ? { from: i - last - 0.5, to: i - last + 0.5 } : [],
    );
  }

  #options(colours: readonly string[], axis: uPlot.Axis, width: number): uPlot.Options {
    return {
      width,
      height: HEIGHT,
      padding: [8, 8, 0, 0],
      legend: { show: false },
      cursor: { show: false },
      plugins: [shading(() => this.#shades())],
      scales: {
        x: { time: false, range: () => [-this.#age, 0] },
        y: { range: (_plot, _min, max) => [0, Math.max(TOP_MIN, (max ?? 0) * 1.15)] },
      },
      axes: [
        {
          ...axisStyle(),
          size: 26,
          grid: { show: false },
          splits: () => [-Math.round(this.#age / 2)],
          values: (_plot, splits) => splits.map((at) => `${-at} s ago`),
        },
        { ...axisStyle(), space: 36, grid: gridStyle(), ...axis },
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
}
