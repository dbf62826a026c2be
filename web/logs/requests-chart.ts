// The histogram: requests over time, stacked by status class, with its legend and readout.

import uPlot from "uplot";
import { compact, grouped, utcClock, utcDay } from "../shared/format.js";
import { create, element, setFigure, setText } from "../shared/page.js";
import type { Summary, Timeline } from "./protocol.js";
import { bucketAt, bucketName, coarsen, roundUp, stack } from "./stacking.js";
import { CLASS_MEANING, STATUS_CLASSES, type StatusClass } from "./status-classes.js";
import { timeLabels } from "./time-axis.js";
import { TimeSpan } from "./time-span.js";

const HEIGHT = 320;
const HEIGHT_NARROW = 240;
const NARROW = 560;

/** The chart draws later classes first, since each is an outline that the ones below it cover. */
const DRAWN = [...STATUS_CLASSES].reverse();

export class RequestsChart {
  readonly #frame = element("chart");
  readonly #readout = element("chart-readout");
  readonly #shown = new Set<StatusClass>(STATUS_CLASSES);
  readonly #keys = new Map<StatusClass, { button: HTMLButtonElement; total: HTMLElement }>();
  readonly #plot: uPlot;
  #span = new TimeSpan();
  #range: [number, number] = [0, 1];
  #peak = 1;
  /** What the server sent last, and what is drawn of it. */
  #given: Timeline | undefined;
  #timeline: Timeline | undefined;
  #final = false;
  /** The bucket that the arrow keys chose. */
  #chosen: number | undefined;

  constructor() {
    this.#buildLegend();
    this.#plot = new uPlot(this.#options(), [[], ...DRAWN.map(() => [])], this.#frame);
    new ResizeObserver(() => this.#fit()).observe(this.#frame);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.#plot.redraw(false, true);
    });
    this.#frame.addEventListener("keydown", (event) => this.#handleKey(event));
    this.#frame.addEventListener("blur", () => this.#choose(undefined));
  }

  /** Empties the chart for a new file. */
  clear(): void {
    this.#span = new TimeSpan();
    this.#range = [0, 1];
    this.#peak = 1;
    this.#given = undefined;
    this.#timeline = undefined;
    this.#chosen = undefined;
    this.#plot.setData([[], ...DRAWN.map(() => [])]);
    for (const { total } of this.#keys.values()) {
      setFigure(total, "–", 0);
    }
    setText(element("chart-title"), "Requests per minute");
    this.#showReadout(null);
  }

  /** Draws the summary; `fraction` (0 to 1) is how much of the file it covers. */
  show(summary: Summary, fraction: number): void {
    for (const [name, { total }] of this.#keys) {
      const count = summary.status_classes[name] ?? 0;
      setFigure(total, grouped(count), count);
    }
    const { timeline } = summary;
    const buckets = timeline.classes["2xx"].length;
    if (buckets > 0) {
      const end = timeline.start + buckets * timeline.bucket_seconds;
      this.#range = this.#span.next(timeline.start, end, fraction);
      this.#given = timeline;
      this.#final = false;
      this.#draw();
      this.#showReadout(this.#bucketUnderCursor());
    }
  }

  /** Fits the scales to what there is: no more will come. */
  finish(): void {
    if (this.#given !== undefined) {
      const { start, bucket_seconds, classes } = this.#given;
      this.#range = this.#span.next(start, start + classes["2xx"].length * bucket_seconds, 1);
      this.#final = true;
      this.#draw();
    }
  }

  #draw(): void {
    if (this.#given === undefined) {
      return;
    }
    const [from, to] = this.#range;
    const timeline = coarsen(this.#given, to - from, this.#plot.bbox.width / devicePixelRatio);
    if (timeline.bucket_seconds !== this.#timeline?.bucket_seconds) {
      setText(element("chart-title"), `Requests per ${bucketName(timeline.bucket_seconds)}`);
      this.#peak = 1;
    }
    this.#timeline = timeline;
    const { times, tops, peak } = stack(timeline, this.#shown);
    // While a file is being read the scale only grows, lest it jump up and down.
    this.#peak = this.#final ? roundUp(peak) : Math.max(this.#peak, roundUp(peak));
    const nothing = times.map(() => null);
    this.#plot.setData([times, ...DRAWN.map((name) => tops.get(name) ?? nothing)]);
    this.#frame.dataset["buckets"] = String(timeline.classes["2xx"].length);
  }

  #options(): uPlot.Options {
    const muted = () => cssColour("--ink-soft");
    const font = () => `12px ${getComputedStyle(document.body).fontFamily}`;
    const lines = { stroke: () => cssColour("--line"), width: 1 };
    return {
      width: this.#frame.clientWidth || 300,
      height: this.#height(),
      tzDate: (at) => uPlot.tzDate(new Date(at * 1_000), "Etc/UTC"),
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: {
        x: { time: true, range: () => this.#range },
        y: { range: () => [0, this.#peak] },
      },
      axes: [
        {
          stroke: muted,
          font: font(),
          size: 46,
          space: 72,
          grid: { show: false },
          ticks: { ...lines, size: 5 },
          values: (_plot, marks, _axis, _space, step) =>
            this.#given === undefined ? marks.map(() => "") : timeLabels(marks, step),
        },
        {
          stroke: muted,
          font: font(),
          size: 48,
          space: 44,
          grid: lines,
          ticks: { show: false },
          values: (_plot, marks) =>
            marks.map((mark) => (this.#given !== undefined && mark % 1 === 0 ? compact(mark) : "")),
        },
      ],
      series: [
        {},
        ...DRAWN.map((name): uPlot.Series => ({
          label: name,
          fill: () => cssColour(`--class-${name}`),
          width: 0,
          points: { show: false },
          ...outline(),
        })),
      ],
      hooks: { setCursor: [() => this.#showReadout(this.#bucketUnderCursor())] },
    };
  }

  #buildLegend(): void {
    const legend = element("chart-legend");
    for (const name of STATUS_CLASSES) {
      const button = create("button", "legend-key");
      button.type = "button";
      button.title = CLASS_MEANING[name];
      button.setAttribute("aria-pressed", "true");
      const swatch = create("span", `swatch swatch-${name}`);
      swatch.setAttribute("aria-hidden", "true");
      const total = create("span", "legend-total", "–");
      total.dataset["testid"] = `class-${name}`;
      button.append(swatch, create("span", "legend-name", name), total);
      button.addEventListener("click", () => this.#toggle(name));
      this.#keys.set(name, { button, total });
      const item = create("li");
      item.append(button);
      legend.append(item);
    }
  }

  #toggle(name: StatusClass): void {
    const show = !this.#shown.has(name);
    if (show) {
      this.#shown.add(name);
    } else {
      this.#shown.delete(name);
    }
    this.#keys.get(name)?.button.setAttribute("aria-pressed", String(show));
    this.#peak = 1;
    this.#draw();
  }

  #handleKey(event: KeyboardEvent): void {
    const buckets = this.#timeline?.classes["2xx"].length ?? 0;
    const from = this.#chosen ?? -1;
    const target = {
      ArrowLeft: this.#chosen === undefined ? buckets - 1 : from - 1,
      ArrowRight: from + 1,
      PageUp: from - 60,
      PageDown: from + 60,
      Home: 0,
      End: buckets - 1,
    }[event.key];
    if (target !== undefined && buckets > 0) {
      event.preventDefault();
      this.#choose(Math.max(0, Math.min(buckets - 1, target)));
    }
  }

  /** Puts the cursor on a bucket, as the pointer would. */
  #choose(bucket: number | undefined): void {
    this.#chosen = bucket;
    const timeline = this.#timeline;
    if (bucket === undefined || timeline === undefined) {
      this.#plot.setCursor({ left: -10, top: -10 });
      return;
    }
    const middle = timeline.start + (bucket + 0.5) * timeline.bucket_seconds;
    this.#plot.setCursor({ left: this.#plot.valToPos(middle, "x"), top: 0 });
  }

  #bucketUnderCursor(): number | null {
    const left = this.#plot.cursor.left ?? -1;
    const timeline = this.#timeline;
    return left < 0 || timeline === undefined
      ? null
      : bucketAt(timeline, this.#plot.posToVal(left, "x"));
  }

  #showReadout(bucket: number | null): void {
    const timeline = this.#timeline;
    if (bucket === null || timeline === undefined) {
      setText(this.#readout, restingReadout(this.#given));
      return;
    }
    const at = timeline.start + bucket * timeline.bucket_seconds;
    const parts = STATUS_CLASSES.map((name) => [name, timeline.classes[name][bucket] ?? 0] as const)
      .filter(([name, count]) => count > 0 && this.#shown.has(name))
      .map(([name, count]) => `${grouped(count)} × ${name}`);
    const clock = utcClock(at, timeline.bucket_seconds < 60);
    setText(this.#readout, `${utcDay(at)} ${clock} UTC: ${parts.join(", ") || "no requests"}`);
  }

  #fit(): void {
    const width = this.#frame.clientWidth;
    if (width > 0) {
      this.#plot.setSize({ width, height: this.#height() });
      this.#draw();
    }
  }

  #height(): number {
    return this.#frame.clientWidth < NARROW ? HEIGHT_NARROW : HEIGHT;
  }
}

/** Columns as wide as their buckets, side by side without a seam. */
function outline(): { paths?: uPlot.Series.PathBuilder } {
  const paths = uPlot.paths.stepped?.({ align: 1 });
  return paths === undefined ? {} : { paths };
}

/** What stands under the chart while nobody points at it. */
function restingReadout(timeline: Timeline | undefined): string {
  const help = "Times in UTC. Point at the chart, or focus it and use the arrow keys.";
  const outside = timeline?.outside ?? 0;
  return outside === 0
    ? help
    : `${help} Left out: ${grouped(outside)} dated too far from the others.`;
}

function cssColour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
