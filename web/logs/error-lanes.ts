// Two lanes above the columns with the buckets that have errors, which may be too few to see below.

import type uPlot from "uplot";
import { cssColour } from "./colours.js";
import type { Layers } from "./stacking.js";

/** The classes with a lane, from the top. */
const CLASSES = ["5xx", "4xx"] as const;
/** The height of a lane and the space below it, in CSS pixels. */
const LANE = 7;
const GAP = 3;
/** The space that the lanes need above the columns. */
export const LANES_HEIGHT = CLASSES.length * (LANE + GAP) + 8;
/** The opacity of a single error; that of the bucket with the most errors is 1. */
const FAINTEST = 0.45;
/** The least width of a mark. */
const WIDTH_MIN = 2;

/** A bucket with errors, and how dark its mark is, from 0 to 1. */
export interface Mark {
  bucket: number;
  opacity: number;
}

/** Returns a mark for each bucket with errors; those with more are darker. */
export function marksOf(counts: readonly number[]): Mark[] {
  const most = counts.reduce((a, b) => Math.max(a, b), 0);
  return counts.flatMap((count, bucket) =>
    count === 0
      ? []
      : [
          {
            bucket,
            opacity: FAINTEST + (1 - FAINTEST) * Math.sqrt((count - 1) / Math.max(1, most - 1)),
          },
        ],
  );
}

/** Returns the lanes as SVG elements above `bottom`; `x` returns the place of a time. */
export function errorLanesAsSvg(
  { start, bucket_seconds, layers }: Layers,
  x: (at: number) => number,
  left: number,
  bottom: number,
  colour: (name: string) => string,
): string[] {
  return CLASSES.flatMap((name, lane) => {
    const marks = marksOf(layers.find((layer) => layer.name === name)?.counts ?? []);
    const top = bottom - LANES_HEIGHT + lane * (LANE + GAP);
    const label = `<text x="${left - 8}" y="${top + LANE}" font-size="10" text-anchor="end">${name}</text>`;
    const rects = marks.map(({ bucket, opacity }) => {
      const at = start + bucket * bucket_seconds;
      const width = Math.max(WIDTH_MIN, x(at + bucket_seconds) - x(at));
      return `<rect x="${x(at).toFixed(2)}" y="${top}" width="${width.toFixed(2)}" height="${LANE}" fill="${colour(`--class-${name}`)}" opacity="${opacity.toFixed(2)}"/>`;
    });
    return marks.length === 0 ? [] : [label, ...rects];
  });
}

/** Draws the lanes of the classes that `isShown` returns true for. */
export function drawErrorLanes(
  plot: uPlot,
  { start, bucket_seconds, layers }: Layers,
  isShown: (name: string) => boolean,
): void {
  const { ctx, bbox } = plot;
  const scale = devicePixelRatio;
  ctx.save();
  ctx.font = `${9 * scale}px ${getComputedStyle(document.body).fontFamily}`;
  ctx.textAlign = "right";
  ctx.textBaseline = "middle";
  CLASSES.forEach((name, lane) => {
    const counts = layers.find((layer) => layer.name === name)?.counts ?? [];
    const marks = isShown(name) ? marksOf(counts) : [];
    if (marks.length === 0) {
      return;
    }
    const top = bbox.top + (lane * (LANE + GAP) - LANES_HEIGHT) * scale;
    ctx.fillStyle = cssColour("--ink-soft");
    ctx.fillText(name, bbox.left - 6 * scale, top + (LANE * scale) / 2);
    ctx.fillStyle = cssColour(`--class-${name}`);
    for (const { bucket, opacity } of marks) {
      const at = start + bucket * bucket_seconds;
      const [left, right] = [at, at + bucket_seconds].map((it) => plot.valToPos(it, "x", true)) as [
        number,
        number,
      ];
      ctx.globalAlpha = opacity;
      ctx.fillRect(left, top, Math.max(WIDTH_MIN * scale, right - left), LANE * scale);
    }
    ctx.globalAlpha = 1;
  });
  ctx.restore();
}
