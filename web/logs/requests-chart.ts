// The histogram: requests over time, stacked by class, method or host; a drag across it zooms in.

import uPlot from "uplot";
import { compact, counted, grouped, utcClock, utcDay } from "../shared/format.js";
import { element, setText } from "../shared/page.js";
import { ChartLegend } from "./chart-legend.js";
import { colourOf, cssColour } from "./colours.js";
import { drawErrorLanes, LANES_HEIGHT } from "./error-lanes.js";
import type { TimeRange } from "./query.js";
import { wholeSeconds } from "./ranges.js";
import {
  bucketAt,
  bucketName,
  coarsen,
  LAYERS_MAX,
  type Layers,
  layersOf,
  peakOf,
  project,
  roundUp,
  type Split,
  stack,
} from "./stacking.js";
import type { Summary, Timeline } from "./summary.js";
import { timeLabels } from "../shared/time-axis.js";
import { TimeSpan } from "./time-span.js";

const HEIGHT = 340;
const HEIGHT_NARROW = 260;
const NARROW = 560;
/** Space to the right of the columns for half of the last label. */
export const PLOT_RIGHT = 18;
/** A drag of fewer pixels is a click. */
const DRAG_MIN = 6;

/** The data that the chart draws. */
export interface Drawn {
  summary: Summary;
  /** The share of the log that it covers, 0 to 1; the axis leaves room for the rest. */
  fraction: number;
  /** The requested range; null means the whole log. */
  range: TimeRange | null;
  compared: { summary: Summary; range: TimeRange } | undefined;
}

export class RequestsChart {
  readonly #frame = element("chart");
  readonly #readout = element("chart-readout");
  readonly #zoom: (range: TimeRange) => void;
  readonly #legend: ChartLegend;
  readonly #plot: uPlot;
  #span = new TimeSpan();
  #axis: [number, number] = [0, 1];
  #peak = 1;
  #split: Split = "class";
  #given: Drawn | undefined;
  #layers: Layers | undefined;
  #before: number[] | undefined;
  #isFinal = false;
  /** The buckets selected with the arrow keys: the first and the current one. */
  #chosen: { anchor: number; at: number } | undefined;

  /** `zoom` is called with each range that is selected by dragging or by keyboard. */
  constructor(zoom: (range: TimeRange) => void) {
    this.#zoom = zoom;
    this.#legend = new ChartLegend(() => {
      this.#peak = 1;
      this.#draw();
    });
    this.#plot = new uPlot(this.#options(), this.#nothing(), this.#frame);
    new ResizeObserver(() => this.#fit()).observe(this.#frame);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.#plot.redraw(false, true);
    });
    this.#frame.addEventListener("keydown", (event) => this.#handleKey(event));
    this.#frame.addEventListener("blur", () => this.#choose(undefined));
    const split = element("chart-split") as HTMLSelectElement;
    split.addEventListener("change", () => {
      this.#split = split.value as Split;
      this.#peak = 1;
      this.#draw();
    });
  }

  /** Empties the chart for a new log. */
  clear(): void {
    this.#span = new TimeSpan();
    this.#axis = [0, 1];
    this.#peak = 1;
    this.#given = undefined;
    this.#layers = undefined;
    this.#before = undefined;
    this.#isFinal = false;
    this.#chosen = undefined;
    this.#plot.setData(this.#nothing());
    this.#legend.show(this.#split, undefined);
    setText(element("chart-title"), "Requests per minute");
    setText(element("chart-empty"), "");
    this.#showReadout(null);
  }

  /** Draws figures. While more are to follow (`isFinal` is false), the scale only grows. */
  show(drawn: Drawn, isFinal: boolean): void {
    const before = this.#given;
    const isSameView = before !== undefined && sameRange(before.range, drawn.range);
    this.#given = drawn;
    this.#isFinal = isFinal || !isSameView;
    this.#axis = this.#axisOf(drawn);
    this.#draw();
    this.#showReadout(this.#bucketUnderCursor());
  }

  /** Returns the canvas, for an export. */
  get canvas(): HTMLCanvasElement {
    return this.#plot.ctx.canvas;
  }

  /** Returns what is drawn, for an export: layers from the bottom up with their colours. */
  get drawing(): {
    layers: Layers;
    axis: [number, number];
    split: Split;
    before: number[] | undefined;
  } | null {
    return this.#layers === undefined
      ? null
      : { layers: this.#layers, axis: this.#axis, split: this.#split, before: this.#before };
  }

  #axisOf({ summary, range, fraction }: Drawn): [number, number] {
    if (range !== null) {
      return [range.from, range.until];
    }
    const { start, bucket_seconds, classes } = summary.timeline;
    const buckets = classes["2xx"].length;
    return buckets === 0
      ? this.#axis
      : this.#span.next(start, start + buckets * bucket_seconds, fraction);
  }

  #draw(): void {
    const given = this.#given;
    if (given === undefined) {
      return;
    }
    const [from, to] = this.#axis;
    const all = layersOf(given.summary.timeline, this.#split);
    const layers = coarsen(all, to - from, this.#plot.bbox.width / devicePixelRatio);
    if (layers.bucket_seconds !== this.#layers?.bucket_seconds) {
      setText(element("chart-title"), `Requests per ${bucketName(layers.bucket_seconds || 60)}`);
      this.#peak = 1;
    }
    this.#layers = layers;
    setText(element("chart-empty"), whyEmpty(layers, this.#split));
    this.#legend.show(this.#split, given.summary);
    const { times, tops, peak } = stack(layers, (name) => this.#legend.isShown(name));
    this.#before = comparedLine(given, layers);
    const top = roundUp(Math.max(peak, peakOf(this.#before ?? [])));
    this.#peak = this.#isFinal ? top : Math.max(this.#peak, top);
    const nothing = times.map(() => null);
    const edges = Array.from({ length: LAYERS_MAX }, (_, slot) => {
      const layer = layers.layers[LAYERS_MAX - 1 - slot];
      return (layer && tops.get(layer.name)) ?? nothing;
    });
    const line =
      this.#before === undefined ? nothing : [...this.#before, this.#before.at(-1) ?? null];
    this.#plot.setData([times, ...edges, line]);
    this.#frame.dataset["buckets"] = String(layers.buckets);
    this.#frame.dataset["from"] = String(from);
  }

  #nothing(): uPlot.AlignedData {
    return [[], ...Array.from({ length: LAYERS_MAX + 1 }, () => [])];
  }

  #options(): uPlot.Options {
    const muted = () => cssColour("--ink-soft");
    const font = () => `12px ${getComputedStyle(document.body).fontFamily}`;
    const lines = { stroke: () => cssColour("--line"), width: 1 };
    return {
      width: this.#frame.clientWidth || 300,
      height: this.#height(),
      padding: [10 + LANES_HEIGHT, PLOT_RIGHT, 0, 0],
      tzDate: (at) => uPlot.tzDate(new Date(at * 1_000), "Etc/UTC"),
      legend: { show: false },
      cursor: {
        y: false,
        drag: { x: true, y: false, setScale: false, dist: DRAG_MIN },
        points: { show: false },
      },
      scales: {
        x: { time: true, range: () => this.#axis },
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
      series: [{}, ...this.#layerSeries(), this.#comparedSeries()],
      hooks: {
        draw: [() => this.#drawErrors()],
        setCursor: [() => this.#showReadout(this.#bucketUnderCursor())],
        setSelect: [() => this.#handleSelect()],
      },
    };
  }

  #drawErrors(): void {
    const layers = this.#layers;
    if (layers !== undefined && this.#split === "class") {
      drawErrorLanes(this.#plot, layers, (name) => this.#legend.isShown(name));
    }
  }

  /** Later layers are drawn first, since each is an outline that the ones below it cover. */
  #layerSeries(): uPlot.Series[] {
    return Array.from({ length: LAYERS_MAX }, (_, slot) => ({
      fill: () => {
        const place = LAYERS_MAX - 1 - slot;
        return colourOf(this.#split, this.#layers?.layers[place]?.name ?? "", place);
      },
      width: 0,
      points: { show: false },
      ...outline(),
    }));
  }

  #comparedSeries(): uPlot.Series {
    return {
      stroke: () => cssColour("--ink"),
      width: 1.25,
      dash: [4, 3],
      points: { show: false },
      ...outline(),
    };
  }

  #handleSelect(): void {
    const { left, width } = this.#plot.select;
    if (width >= DRAG_MIN) {
      const from = this.#plot.posToVal(left, "x");
      const until = this.#plot.posToVal(left + width, "x");
      this.#plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
      if (this.#layers !== undefined) {
        this.#zoom(wholeSeconds(from, until));
      }
    }
  }

  #handleKey(event: KeyboardEvent): void {
    const buckets = this.#layers?.buckets ?? 0;
    const { anchor, at } = this.#chosen ?? { anchor: -1, at: -1 };
    if (event.key === "Enter" && this.#chosen !== undefined) {
      this.#zoomInto(Math.min(anchor, at), Math.max(anchor, at));
      return;
    }
    const target = {
      ArrowLeft: this.#chosen === undefined ? buckets - 1 : at - 1,
      ArrowRight: at + 1,
      PageUp: at - 60,
      PageDown: at + 60,
      Home: 0,
      End: buckets - 1,
    }[event.key];
    if (target !== undefined && buckets > 0) {
      event.preventDefault();
      const to = Math.max(0, Math.min(buckets - 1, target));
      this.#choose({ anchor: event.shiftKey && this.#chosen !== undefined ? anchor : to, at: to });
    }
  }

  #zoomInto(first: number, last: number): void {
    const layers = this.#layers;
    if (layers !== undefined) {
      const { start, bucket_seconds } = layers;
      this.#choose(undefined);
      this.#zoom({
        from: start + first * bucket_seconds,
        until: start + (last + 1) * bucket_seconds,
      });
    }
  }

  /** Puts the cursor on a bucket, as the pointer would, and marks the selection made with Shift. */
  #choose(chosen: { anchor: number; at: number } | undefined): void {
    this.#chosen = chosen;
    const layers = this.#layers;
    if (chosen === undefined || layers === undefined) {
      this.#plot.setCursor({ left: -10, top: -10 });
      this.#plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
      return;
    }
    const place = (bucket: number) =>
      this.#plot.valToPos(layers.start + bucket * layers.bucket_seconds, "x");
    const [first, last] = [Math.min(chosen.anchor, chosen.at), Math.max(chosen.anchor, chosen.at)];
    const left = place(first);
    const width = first === last ? 0 : place(last + 1) - left;
    this.#plot.setSelect({ left, top: 0, width, height: this.#plot.over.clientHeight }, false);
    this.#plot.setCursor({ left: place(chosen.at + 0.5), top: 0 });
  }

  #bucketUnderCursor(): number | null {
    const left = this.#plot.cursor.left ?? -1;
    const layers = this.#layers;
    return left < 0 || layers === undefined
      ? null
      : bucketAt(layers, this.#plot.posToVal(left, "x"));
  }

  #showReadout(bucket: number | null): void {
    const layers = this.#layers;
    if (bucket === null || layers === undefined) {
      setText(this.#readout, restingReadout(this.#given?.summary.timeline));
      return;
    }
    const at = layers.start + bucket * layers.bucket_seconds;
    const parts = layers.layers
      .map(({ name, counts }) => [name, counts[bucket] ?? 0] as const)
      .filter(([name, count]) => count > 0 && this.#legend.isShown(name))
      .map(([name, count]) => `${grouped(count)} × ${name}`);
    const before = this.#before?.[bucket];
    const compared = before === undefined ? "" : `; compared with ${grouped(before)}`;
    const clock = utcClock(at, layers.bucket_seconds < 60);
    const requests = parts.join(", ") || "no requests";
    setText(this.#readout, `${utcDay(at)} ${clock} UTC: ${requests}${compared}`);
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

/** Returns why the chart is empty; an empty string if it is not. */
function whyEmpty({ buckets, layers }: Layers, split: Split): string {
  if (buckets === 0) {
    return "No request matches the filters.";
  }
  return layers.length > 0 ? "" : `The log format does not include the ${split}.`;
}

/** Returns the requests of the compared range in each bucket of the one shown. */
function comparedLine({ range, compared, summary }: Drawn, layers: Layers): number[] | undefined {
  if (compared === undefined) {
    return undefined;
  }
  const from = range?.from ?? summary.first_time ?? 0;
  return project(layersOf(compared.summary.timeline, "class"), from - compared.range.from, layers);
}

/** Columns as wide as their buckets, without gaps. */
function outline(): { paths?: uPlot.Series.PathBuilder } {
  const paths = uPlot.paths.stepped?.({ align: 1 });
  return paths === undefined ? {} : { paths };
}

/** Returns the text below the chart while the pointer is elsewhere. */
function restingReadout(timeline: Timeline | undefined): string {
  const help =
    "Times in UTC. Drag across the chart to zoom in; with the keyboard: arrow keys, Shift, Enter.";
  const outside = timeline?.outside ?? 0;
  return outside === 0
    ? help
    : `${help} Not shown: ${counted(outside, "request")} dated too far from the others.`;
}

function sameRange(a: TimeRange | null, b: TimeRange | null): boolean {
  return a?.from === b?.from && a?.until === b?.until;
}
