// The time range of the chart while a file is still being read.

/** A new estimate of the end moves the axis only if it differs by more than this share. */
const STEADY = 0.2;
/** Estimates from less of the file than this are too poor to show. */
const FIRST_GUESS_AT = 0.02;
/** If this much more of the file contains no later request, it is not in chronological order. */
const ORDERLY = 1.25;

/**
 * Estimates from the part read so far when the log will end, so that the chart fills from left to
 * right instead of being compressed with every snapshot. The axis never cuts off what has been
 * read, and at the end it shows exactly the log.
 */
export class TimeSpan {
  #start = NaN;
  #end = NaN;
  /** The latest request so far, and how much of the file had been read at that point. */
  #latest = -Infinity;
  #latestAt = 0;

  /**
   * Returns where the axis begins and ends, in Unix seconds.
   *
   * `from` and `to` bound the part read so far, which is `fraction` (0 to 1) of the file.
   */
  next(from: number, to: number, fraction: number): [start: number, end: number] {
    if (to > this.#latest) {
      this.#latest = to;
      this.#latestAt = fraction;
    }
    const orderly = fraction <= this.#latestAt * ORDERLY;
    if (fraction >= 1 || fraction < FIRST_GUESS_AT || !orderly) {
      return this.#keep(from, to);
    }
    const guess = from + (to - from) / fraction;
    const drift = Math.abs(guess - this.#end) / (guess - from || 1);
    const steady = this.#start === from && this.#end >= to && drift <= STEADY;
    return this.#keep(from, steady ? this.#end : Math.max(guess, to));
  }

  #keep(start: number, end: number): [number, number] {
    this.#start = start;
    this.#end = end;
    return [start, end];
  }
}
