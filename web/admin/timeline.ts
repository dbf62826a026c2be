// Turns the changes of the link to the broker into spans of time.

import type { Change, LinkState } from "./views.js";

/** A span in which the state did not change, as shares (0 to 1) of the time shown. */
export interface Span {
  state: LinkState;
  from: number;
  to: number;
}

/** A gap, as a share of the time shown. */
export interface Mark {
  at: number;
  change: Change & { change: "gap" };
}

export interface Timeline {
  fromMs: number;
  toMs: number;
  spans: Span[];
  marks: Mark[];
}

/**
 * Returns the spans from `fromMs` to `toMs`, newest first, like `changes`. The state before the
 * oldest change is unknown; if there are no changes, it was always the current one.
 */
export function timelineOf(
  changes: readonly Change[],
  state: LinkState,
  fromMs: number,
  toMs: number,
): Timeline {
  const share = (ms: number) =>
    Math.min(1, Math.max(0, (ms - fromMs) / Math.max(1, toMs - fromMs)));
  const spans: Span[] = [];
  const marks: Mark[] = [];
  let endMs = toMs;
  let isChanged = false;
  for (const change of changes) {
    if (change.change !== "gap") {
      add(spans, change.change, share(change.at_ms), share(endMs));
      endMs = change.at_ms;
      isChanged = true;
    } else if (change.at_ms >= fromMs) {
      marks.push({ at: share(change.at_ms), change });
    }
  }
  if (!isChanged) {
    add(spans, state, 0, 1);
  }
  return { fromMs, toMs, spans, marks };
}

function add(spans: Span[], state: LinkState, from: number, to: number): void {
  if (to > from) {
    spans.push({ state, from, to });
  }
}
