// Gaps: publications that were missed, and why.

/** One or more missed publications. */
export interface Gap {
  /** How many publications were missed, if that is known. */
  readonly missed: number | undefined;
  /**
   * Why: `"reader"` if an iterator of this program fell behind, `"recovery"` if the publications of
   * a lost connection could not be recovered; other causes come from the server
   * (docs/gateway/protocols.md).
   */
  readonly cause: string;
}

/** The server's causes, indexed by their numbers in blocks. */
const CAUSES = [
  "unknown",
  "epoch_changed",
  "link_lost",
  "offset_hole",
  "overflow",
  "ring_evicted",
  "stream_reset",
];

/** Returns the cause for a number in a block, or "unknown" for one that a newer server added. */
export function causeOf(number: number): string {
  return CAUSES[number] ?? "unknown";
}

const EPOCH_CHANGING = ["epoch_changed", "link_lost", "overflow", "stream_reset"];

/** Returns whether offsets after a gap may belong to another epoch. */
export function mayChangeEpoch(cause: string): boolean {
  return EPOCH_CHANGING.includes(cause);
}
