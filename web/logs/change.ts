// How a figure differs from the one it is compared with, in words.

import { grouped, percentage } from "../shared/format.js";

/** Writes the change from `before` to `now`: +35 %, −12.5 %, ±0 %, ×14, new, gone. */
export function changeOf(now: number, before: number): string {
  if (now === before) {
    return "±0 %";
  }
  if (before === 0) {
    return "new";
  }
  if (now === 0) {
    return "gone";
  }
  const ratio = now / before;
  if (ratio >= 10) {
    return `×${grouped(ratio)}`;
  }
  return ratio > 1
    ? `+${percentage(now - before, before)}`
    : `−${percentage(before - now, before)}`;
}

/** Returns the direction of a change, for the style sheet. */
export function directionOf(now: number, before: number): "up" | "down" | "same" {
  return now === before ? "same" : now > before ? "up" : "down";
}
