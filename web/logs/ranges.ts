// Time ranges that the user drags or moves.

import type { TimeRange } from "./query.js";

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
