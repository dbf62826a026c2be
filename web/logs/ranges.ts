// Time ranges that the user drags or moves.

import type { TimeRange } from "./query.js";
import type { Summary } from "./summary.js";

/** Widens a dragged range to whole seconds, at least one. */
export function wholeSeconds(from: number, until: number): TimeRange {
  const start = Math.floor(from);
  return { from: start, until: Math.max(start + 1, Math.ceil(until)) };
}

/** Moves a range into the log, and shortens it if it is longer; null means the whole log. */
export function within(range: TimeRange, start: number, end: number): TimeRange | null {
  const length = Math.min(Math.max(1, range.until - range.from), end - start);
  if (length >= end - start) {
    return null;
  }
  const from = Math.round(Math.max(start, Math.min(end - length, range.from)));
  return { from, until: from + Math.max(1, Math.round(length)) };
}

/**
 * Returns the time from the first request to just after the last, without those that are too far
 * from the others to be on the time axis; null without requests.
 */
export function spanOnAxis({ first_time, last_time, timeline }: Summary): TimeRange | null {
  if (first_time === null || last_time === null) {
    return null;
  }
  const { start, bucket_seconds, classes, outside } = timeline;
  if (outside === 0) {
    return { from: first_time, until: last_time + 1 };
  }
  return {
    from: Math.max(first_time, start),
    until: Math.min(last_time + 1, start + classes["2xx"].length * bucket_seconds),
  };
}
