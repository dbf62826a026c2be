// The note about compressed files that could not be read to their end.

import { counted, grouped } from "../shared/format.js";
import type { Damage } from "./summary.js";

/** The most files that are named. */
const NAMED_MAX = 3;

/** Returns which files are incomplete and how much of each was read; empty if all are whole. */
export function damageNote(damaged: readonly Damage[]): string {
  const named = damaged.slice(0, NAMED_MAX).map(describe);
  const others = damaged.length - named.length;
  return [...named, ...(others > 0 ? [`${grouped(others)} more are incomplete.`] : [])].join(" ");
}

function describe({ file, reason, bytes, lines }: Damage): string {
  const what = reason === "truncated" ? "ends early, after" : "is damaged at or before";
  const shown = `The figures include its first ${lines === 1 ? "line" : counted(lines, "line")}.`;
  return `${file} ${what} ${counted(bytes, "byte")}. ${shown}`;
}
