// The whole log in a narrow strip, with the range shown and the range compared with marked on it.

import uPlot from "uplot";
import { utcClock, utcDay } from "../shared/format.js";
import { create, element } from "../shared/page.js";
import { cssColour } from "./colours.js";
import type { TimeRange } from "./query.js";
import { wholeSeconds, within } from "./ranges.js";
import { PLOT_RIGHT } from "./requests-chart.js";
import { coarsen, layersOf, peakOf, roundUp, totals } from "./stacking.js";
import type { Summary } from "./summary.js";
import { TimeSpan } from "./time-span.js";

const HEIGHT = 56;
/** A drag of fewer pixels is a click. */
const DRAG_MIN = 4;
/** The arrow keys move a range, and + and − resize it, by this share of its length. */
const STEP = 0.25;

/** The range that a drag or key changes. */
export type StripTarget = "shown" | "compared";

export class OverviewStrip {
  readonly #frame = element("overview-strip");
  readonly #marks = {
    shown: create("div", "mark mark-shown"),
    compared: create("div", "mark mark-compared"),
  };
  readonly #choose: (target: StripTarget, range: TimeRange | null) => void;
  readonly #plot: uPlot;
  #span = new TimeSpan();
  #axis: [number, number] = [0, 1];
  #summary: Summary | undefined;
  #ranges: { shown: TimeRange | null; compared: TimeRange | null } = {
    shown: null,
    compared: null,
  };
  #target: StripTarget = "shown";

  /** `choose` is called with each range that is dragged or moved; null means the whole log. */
  constructor(choose: (target: StripTarget, range: TimeRange | null) => void) {
    this.#choose = choose;
    this.#plot = new uPlot(this.#options(), [[], []], this.#frame);
    this.#plot.over.append(this.#marks.compared, this.#marks.shown);
    this.#plot.over.addEventListener(
      "pointerdown",
      ({ shiftKey }) => {
        this.#target = shiftKey && this.#ranges.compared !== null ? "compared" : "shown";
      },
      { capture: true },
    );
    this.#frame.addEventListener("keydown", (event) => this.#handleKey(event));
    new ResizeObserver(() => this.#fit()).observe(this.#frame);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.#plot.redraw(false, true);
    });
  }

  clear(): void {
    this.#span = new TimeSpan();
    this.#axis = [0, 1];
    this.#summary = undefined;
    this.#plot.setData([[], []]);
    this.mark(this.#ranges.shown, this.#ranges.compared);
  }

  /** Draws the whole log; `fraction` (0 to 1) is how much of it has been read. */
  show(summary: Summary, fraction: number): void {
    const { start, bucket_seconds, classes } = summary.timeline;
    const buckets = classes["2xx"].length;
    if (buckets > 0) {
      this.#summary = summary;
      this.#axis = this.#span.next(start, start + buckets * bucket_seconds, fraction);
      this.#draw();
    }
  }

  /** Marks the range shown and the one compared with; null means the whole log and none. */
  mark(shown: TimeRange | null, compared: TimeRange | null): void {
    this.#ranges = { shown, compared };
    this.#place("shown", shown);
    this.#place("compared", compared);
    const { from, until } = shown ?? { from: this.#axis[0], until: this.#axis[1] };
    const text = `${utcDay(from)} ${utcClock(from, true)} to ${utcDay(until)} ${utcClock(until, true)} UTC`;
    this.#frame.setAttribute("aria-valuetext", shown === null ? "the whole log" : text);
    this.#frame.setAttribute("aria-valuenow", String(Math.round(from)));
    this.#frame.setAttribute("aria-valuemin", String(Math.round(this.#axis[0])));
    this.#frame.setAttribute("aria-valuemax", String(Math.round(this.#axis[1])));
  }

  #draw(): void {
    const summary = this.#summary;
    if (summary === undefined) {
      return;
    }
    const [from, to] = this.#axis;
    const width = this.#plot.bbox.width / devicePixelRatio / 2;
    const layers = coarsen(layersOf(summary.timeline, "class"), to - from, width);
    const counts = totals(layers);
    const edges = [...counts, counts.at(-1) ?? 0];
    const times = edges.map((_, i) => layers.start + i * layers.bucket_seconds);
    this.#plot.setData([times, edges]);
    this.mark(this.#ranges.shown, this.#ranges.compared);
  }

  #place(target: StripTarget, range: TimeRange | null): void {
    const mark = this.#marks[target];
    mark.hidden = range === null || this.#summary === undefined;
    if (range !== null && this.#summary !== undefined) {
      const width = this.#plot.over.clientWidth;
      const [left, right] = [range.from, range.until].map((at) =>
        Math.max(0, Math.min(width, this.#plot.valToPos(at, "x"))),
      ) as [number, number];
      mark.style.left = `${left}px`;
      mark.style.width = `${Math.max(2, right - left)}px`;
    }
  }

  #handleSelect(): void {
    const { left, width } = this.#plot.select;
    this.#plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    if (width >= DRAG_MIN && this.#summary !== undefined) {
      const [from, until] = [left, left + width].map((x) => this.#plot.posToVal(x, "x")) as [
        number,
        number,
      ];
      this.#choose(this.#target, wholeSeconds(from, until));
    }
  }

  /**
   * Arrows move the range, with Shift the compared one; + and − zoom; Escape shows the whole log.
   */
  #handleKey(event: KeyboardEvent): void {
    if (event.key === "Escape") {
      this.#choose("shown", null);
      return;
    }
    const [start, end] = this.#axis;
    const target: StripTarget =
      event.shiftKey && this.#ranges.compared !== null && event.key.startsWith("Arrow")
        ? "compared"
        : "shown";
    const range = this.#ranges[target] ?? { from: start, until: end };
    const length = range.until - range.from;
    const step = Math.max(1, Math.round(length * STEP));
    const changed = {
      ArrowLeft: { from: range.from - step, until: range.until - step },
      ArrowRight: { from: range.from + step, until: range.until + step },
      "+": { from: range.from + step, until: range.until - step },
      "-": { from: range.from - step, until: range.until + step },
    }[event.key];
    if (changed !== undefined && this.#summary !== undefined) {
      event.preventDefault();
      this.#choose(target, within(changed, start, end));
    }
  }

  #options(): uPlot.Options {
    return {
      width: this.#frame.clientWidth || 300,
      height: HEIGHT,
      padding: [4, PLOT_RIGHT, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        points: { show: false },
        drag: { x: true, y: false, setScale: false, dist: DRAG_MIN },
      },
      scales: {
        x: { time: true, range: () => this.#axis },
        y: { range: (_plot, _min, max) => [0, roundUp(peakOf([max ?? 0]))] },
      },
      axes: [{ show: false }, { show: false, size: 48 }],
      series: [
        {},
        {
          fill: () => cssColour("--strip"),
          width: 0,
          points: { show: false },
          ...(uPlot.paths.stepped === undefined
            ? {}
            : { paths: uPlot.paths.stepped({ align: 1 }) }),
        },
      ],
      hooks: { setSelect: [() => this.#handleSelect()] },
    };
  }

  #fit(): void {
    const width = this.#frame.clientWidth;
    if (width > 0) {
      this.#plot.setSize({ width, height: HEIGHT });
      this.#draw();
    }
  }
}
