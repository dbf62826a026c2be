// The time axis of charts: UTC, 24 hours, the day where it changes.

import { utcClock, utcDay } from "./format.js";

const DAY = 86_400;

/**
 * Labels the marks of the axis, which are `step` seconds apart: the time of day, and below it the
 * day on the first mark and wherever a new day begins.
 */
export function timeLabels(marks: number[], step: number): string[] {
  return marks.map((mark, i) => {
    const day = utcDay(mark);
    const previous = marks[i - 1];
    const isNewDay = previous === undefined || utcDay(previous) !== day;
    if (step >= DAY) {
      return day;
    }
    const clock = utcClock(mark, step < 60);
    return isNewDay ? `${clock}\n${day}` : clock;
  });
}
