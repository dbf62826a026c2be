// How long requests took over time, as the server says it.

import { counted, utcClock, utcDay } from "../shared/format.js";
import type { Fields } from "./fields.js";
import { duration } from "./latency.js";

/** The percentiles that are drawn, by the names of their lists. */
export const PERCENTILES = [
  { list: "p50_us", label: "p50" },
  { list: "p90_us", label: "p90" },
  { list: "p99_us", label: "p99" },
  { list: "p999_us", label: "p99.9" },
] as const;
export type PercentileList = (typeof PERCENTILES)[number]["list"];

/** Lists of equal length: a figure for each bucket of time, in microseconds. */
export interface LatencySeries extends Record<PercentileList, (number | null)[]> {
  /** Unix seconds. */
  start: number;
  bucket_seconds: number;
  /** The requests that have a duration. */
  counts: number[];
  /** The largest relative error of a percentile. */
  error: number;
}

/** Throws `NotUnderstood` if a field is missing or has the wrong type. */
export function parseLatencySeries(series: Fields): LatencySeries {
  const buckets = series.list("counts").length;
  return {
    start: series.time("start") ?? 0,
    bucket_seconds: series.count("bucket_seconds"),
    counts: series.countList("counts", buckets),
    p50_us: series.countOrNullList("p50_us", buckets),
    p90_us: series.countOrNullList("p90_us", buckets),
    p99_us: series.countOrNullList("p99_us", buckets),
    p999_us: series.countOrNullList("p999_us", buckets),
    error: series.count("error"),
  };
}

/** Describes a bucket: "22 Jan 2021 01:47 UTC: p50 12.0 ms, …; 60 requests". */
export function readoutOf(series: LatencySeries, bucket: number): string {
  const start = series.start + bucket * series.bucket_seconds;
  const at = `${utcDay(start)} ${utcClock(start, series.bucket_seconds < 60)} UTC`;
  const figures = PERCENTILES.flatMap(({ list, label }) => {
    const figure = series[list][bucket] ?? null;
    return figure === null ? [] : [`${label} ${duration(figure)}`];
  });
  const count = series.counts[bucket] ?? 0;
  return figures.length === 0
    ? `${at}: no requests`
    : `${at}: ${figures.join(", ")}; ${counted(count, "request")}`;
}

/** Returns the powers of ten, in microseconds, between which all figures are. */
export function decades(least: number | null, most: number | null): [number, number] {
  const low = 10 ** Math.floor(Math.log10(Math.max(1, least ?? 1)));
  const high = 10 ** Math.ceil(Math.log10(Math.max(1, most ?? 1)));
  return [low, Math.max(low * 10, high)];
}
