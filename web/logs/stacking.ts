// From the server's timeline to the outlines that the chart fills.

import type { Timeline } from "./protocol.js";
import { STATUS_CLASSES, type StatusClass } from "./status-classes.js";

export interface Stack {
  /** Unix seconds at which each bucket begins, and at the end where the last one ends. */
  times: number[];
  /** For each shown class, its top edge: its own requests and those of the classes below it. */
  tops: Map<StatusClass, number[]>;
  /** The highest edge of all. */
  peak: number;
}

/** Stacks the shown classes upon each other in the order of `STATUS_CLASSES`. */
export function stack(timeline: Timeline, shown: ReadonlySet<StatusClass>): Stack {
  const buckets = timeline.classes["2xx"].length;
  const edges = buckets === 0 ? 0 : buckets + 1;
  const times = Array.from(
    { length: edges },
    (_, i) => timeline.start + i * timeline.bucket_seconds,
  );
  const tops = new Map<StatusClass, number[]>();
  let below = new Array<number>(edges).fill(0);
  for (const name of STATUS_CLASSES) {
    if (shown.has(name)) {
      below = raise(below, timeline.classes[name]);
      tops.set(name, below);
    }
  }
  return { times, tops, peak: below.reduce((a, b) => Math.max(a, b), 0) };
}

/** Adds counts onto an edge. The value at the far end repeats the last: a column is as wide as its bucket. */
function raise(edge: number[], counts: number[]): number[] {
  const last = counts.length - 1;
  return edge.map((height, i) => height + (counts[Math.min(i, last)] ?? 0));
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

/** Lengths of a column that read well, in seconds. */
const COLUMN_SECONDS = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400,
];

/**
 * Merges buckets until `seconds` of them need no more than `columnsMax` columns, for a screen too
 * narrow to show each. Columns begin at multiples of their length.
 */
export function coarsen(timeline: Timeline, seconds: number, columnsMax: number): Timeline {
  const given = timeline.bucket_seconds;
  const wanted = Math.max(given, seconds / Math.max(1, columnsMax));
  const length = wanted === given ? given : columnSeconds(given, wanted);
  if (length === given) {
    return timeline;
  }
  const start = Math.floor(timeline.start / length) * length;
  const merge = (counts: number[]) => {
    const last = timeline.start + (counts.length - 1) * given;
    const columns = new Array<number>(Math.floor((last - start) / length) + 1).fill(0);
    counts.forEach((count, i) => {
      const column = Math.floor((timeline.start + i * given - start) / length);
      columns[column] = (columns[column] ?? 0) + count;
    });
    return columns;
  };
  const classes = Object.fromEntries(
    STATUS_CLASSES.map((name) => [name, merge(timeline.classes[name])]),
  ) as Timeline["classes"];
  return { ...timeline, start, bucket_seconds: length, classes };
}

/** Returns a length of whole buckets, at least `wanted`: one that reads well, or buckets doubled. */
function columnSeconds(given: number, wanted: number): number {
  const doubled = given * 2 ** Math.ceil(Math.log2(wanted / given));
  const round = COLUMN_SECONDS.find((s) => s >= wanted && s % given === 0);
  return round !== undefined && round <= 2 * doubled ? round : doubled;
}

/** Returns the bucket that the time lies in, or null beside the timeline. */
export function bucketAt(timeline: Timeline, unixSeconds: number): number | null {
  const bucket = Math.floor((unixSeconds - timeline.start) / timeline.bucket_seconds);
  return bucket >= 0 && bucket < timeline.classes["2xx"].length ? bucket : null;
}

/** Names the length of a bucket as in "requests per …": minute, 5 minutes, hour. */
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
