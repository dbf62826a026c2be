// Turns the server's timeline into the outlines that the chart fills.

import type { Timeline } from "./summary.js";
import { STATUS_CLASSES } from "./status-classes.js";

/** The field by which the columns of the chart are split. */
export type Split = "class" | "method" | "host";

/** One colour of the columns: a value, and its requests in each bucket. */
export interface Layer {
  name: string;
  counts: number[];
}

/** Requests over time in layers, from the bottom up; all layers have the same number of buckets. */
export interface Layers {
  start: number;
  bucket_seconds: number;
  buckets: number;
  layers: Layer[];
}

export interface Stack {
  /** Unix seconds at which each bucket begins, followed by the end of the last one. */
  times: number[];
  /** For each shown layer, its top edge: its own requests and those of the layers below it. */
  tops: Map<string, number[]>;
  /** The highest edge of all. */
  peak: number;
}

/** The maximum number of layers; the rarest values are merged into the last one. */
export const LAYERS_MAX = 9;
export const OTHER_LAYER = "(other)";

/** Splits a timeline into layers. */
export function layersOf(timeline: Timeline, split: Split): Layers {
  const { start, bucket_seconds, classes } = timeline;
  const buckets = classes["2xx"].length;
  const layers =
    split === "class"
      ? STATUS_CLASSES.map((name) => ({ name, counts: classes[name] }))
      : largest(split === "method" ? timeline.by_method : timeline.by_host, buckets);
  return { start, bucket_seconds, buckets, layers };
}

function largest(lists: Record<string, number[]>, buckets: number): Layer[] {
  const sized = Object.entries(lists)
    .map(([name, counts]) => ({ name, counts, total: total(counts) }))
    .sort(
      (a, b) =>
        Number(a.name === OTHER_LAYER) - Number(b.name === OTHER_LAYER) || b.total - a.total,
    );
  if (sized.length <= LAYERS_MAX) {
    return sized.map(({ name, counts }) => ({ name, counts }));
  }
  const rest = new Array<number>(buckets).fill(0);
  for (const { counts } of sized.slice(LAYERS_MAX - 1)) {
    counts.forEach((count, i) => (rest[i] = (rest[i] ?? 0) + count));
  }
  const kept = sized.slice(0, LAYERS_MAX - 1).map(({ name, counts }) => ({ name, counts }));
  return [...kept, { name: OTHER_LAYER, counts: rest }];
}

/** Returns the sum of a list. */
export function total(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Stacks the shown layers, the first at the bottom. */
export function stack(
  { start, bucket_seconds, buckets, layers }: Layers,
  isShown: (name: string) => boolean,
): Stack {
  const edges = buckets === 0 ? 0 : buckets + 1;
  const times = Array.from({ length: edges }, (_, i) => start + i * bucket_seconds);
  const tops = new Map<string, number[]>();
  let below = new Array<number>(edges).fill(0);
  for (const { name, counts } of layers) {
    if (isShown(name)) {
      below = raise(below, counts);
      tops.set(name, below);
    }
  }
  return { times, tops, peak: peakOf(below) };
}

/** Adds counts to an edge. The last value is repeated: a column is as wide as its bucket. */
function raise(edge: number[], counts: number[]): number[] {
  const last = counts.length - 1;
  return edge.map((height, i) => height + (counts[Math.min(i, last)] ?? 0));
}

/** Returns the highest of the values, at least 0. */
export function peakOf(values: readonly number[]): number {
  return values.reduce((a, b) => Math.max(a, b), 0);
}

/** Returns the next round number that is at least `value`, and at least 1. */
export function roundUp(value: number): number {
  if (value <= 1) {
    return 1;
  }
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((s) => s * power >= value) ?? 10;
  return step * power;
}

/** Round lengths of a column, in seconds. */
const COLUMN_SECONDS = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400,
];

/**
 * Merges buckets until `seconds` of them need at most `columnsMax` columns, for a screen that is
 * too narrow to show each bucket. Columns begin at multiples of their length.
 */
export function coarsen(given: Layers, seconds: number, columnsMax: number): Layers {
  const wanted = Math.max(given.bucket_seconds, seconds / Math.max(1, columnsMax));
  const length =
    wanted === given.bucket_seconds ? wanted : columnSeconds(given.bucket_seconds, wanted);
  if (length === given.bucket_seconds || given.buckets === 0) {
    return given;
  }
  const start = Math.floor(given.start / length) * length;
  const last = given.start + (given.buckets - 1) * given.bucket_seconds;
  const buckets = Math.floor((last - start) / length) + 1;
  const layers = given.layers.map(({ name, counts }) => {
    const columns = new Array<number>(buckets).fill(0);
    counts.forEach((count, i) => {
      const column = Math.floor((given.start + i * given.bucket_seconds - start) / length);
      columns[column] = (columns[column] ?? 0) + count;
    });
    return { name, counts: columns };
  });
  return { start, bucket_seconds: length, buckets, layers };
}

/** Returns a length of whole buckets, at least `wanted`: a round one, or buckets doubled. */
function columnSeconds(given: number, wanted: number): number {
  const doubled = given * 2 ** Math.ceil(Math.log2(wanted / given));
  const round = COLUMN_SECONDS.find((s) => s >= wanted && s % given === 0);
  return round !== undefined && round <= 2 * doubled ? round : doubled;
}

/**
 * Returns the requests of `other`, moved by `shiftSeconds`, in each bucket of `onto`. A bucket that
 * overlaps two is divided in proportion to its overlap with each.
 */
export function project(other: Layers, shiftSeconds: number, onto: Layers): number[] {
  const columns = new Array<number>(onto.buckets).fill(0);
  const sums = totals(other);
  sums.forEach((count, i) => {
    const from =
      (other.start + shiftSeconds + i * other.bucket_seconds - onto.start) / onto.bucket_seconds;
    const until = from + other.bucket_seconds / onto.bucket_seconds;
    for (
      let column = Math.max(0, Math.floor(from));
      column < Math.min(until, onto.buckets);
      column += 1
    ) {
      const overlap = Math.min(until, column + 1) - Math.max(from, column);
      columns[column] = (columns[column] ?? 0) + (count * overlap) / (until - from);
    }
  });
  return columns;
}

/** Returns the requests of all layers in each bucket. */
export function totals({ buckets, layers }: Layers): number[] {
  return Array.from({ length: buckets }, (_, i) =>
    layers.reduce((sum, { counts }) => sum + (counts[i] ?? 0), 0),
  );
}

/** Returns the bucket that contains the time, or null if none does. */
export function bucketAt(
  { start, bucket_seconds, buckets }: Layers,
  unixSeconds: number,
): number | null {
  const bucket = Math.floor((unixSeconds - start) / bucket_seconds);
  return bucket >= 0 && bucket < buckets ? bucket : null;
}

/** Returns the length of a bucket for "requests per …": minute, 5 minutes, hour. */
export function bucketName(seconds: number): string {
  for (const [unit, name] of [
    [86_400, "day"],
    [3_600, "hour"],
    [60, "minute"],
  ] as const) {
    if (seconds >= unit && seconds % unit === 0) {
      return seconds === unit ? name : `${seconds / unit} ${name}s`;
    }
  }
  return seconds === 1 ? "second" : `${seconds} seconds`;
}
