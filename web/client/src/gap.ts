// Publications that were missed, and why.

/** Something was missed. */
export interface Gap {
  /** How many publications, if that is known. */
  readonly missed: number | undefined;
  /**
   * Why: `"reader"` means that an iterator of this program fell behind, `"recovery"` that what was published
   * during a cut could not be recovered; the others are the server's words (docs/gateway/protocols.md).
   */
  readonly cause: string;
}

/** The server's words by their numbers in blocks. */
const CAUSES = [
  "unknown",
  "epoch_changed",
  "link_lost",
  "offset_hole",
  "overflow",
  "ring_evicted",
  "stream_reset",
];

/** Returns the word for a number in a block; one that only a newer server knows reads as "unknown". */
export function causeOf(number: number): string {
  return CAUSES[number] ?? "unknown";
}

const EPOCH_CHANGING = ["epoch_changed", "link_lost", "overflow", "stream_reset"];

/** Says whether offsets after a gap may belong to another epoch. */
export function mayChangeEpoch(cause: string): boolean {
  return EPOCH_CHANGING.includes(cause);
}
