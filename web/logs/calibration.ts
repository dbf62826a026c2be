// Which way of reading is faster in this browser: tried out on the first part of a large file.
//
// Measured to a server that parses nothing, one way is 3 times as fast in Firefox (slices) and the
// other 1.8 times in Chromium (stream); no name of a browser says so reliably, a clock does.

import type { ReaderKind } from "./file-reader.js";

const MIB = 1024 * 1024;
/** Each way reads this much; the first half fills the pipe, the second is timed. */
const TRIAL_BYTES = 32 * MIB;
/** Smaller files are sent in slices: they'd be over before the trial paid. */
const WORTHWHILE_BYTES = 256 * MIB;
/** Slices are the plainer way, so the stream has to be clearly faster. */
const CLEARLY_FASTER = 1.1;

/** Decides the way of reading for each part of one upload. */
export class Calibration {
  readonly #worthwhile: boolean;
  /** When the server had acknowledged each mark of the trial, by its byte. */
  readonly #marks = new Map<number, number>([
    [TRIAL_BYTES / 2, NaN],
    [TRIAL_BYTES, NaN],
    [(TRIAL_BYTES * 3) / 2, NaN],
    [TRIAL_BYTES * 2, NaN],
  ]);
  #decided: ReaderKind | undefined;

  /** `forced` skips the trial. */
  constructor(size: number, forced?: ReaderKind) {
    this.#worthwhile = size >= WORTHWHILE_BYTES;
    this.#decided = forced;
  }

  /** Returns how to read the bytes from `offset` on. */
  kindAt(offset: number): ReaderKind {
    if (this.#decided !== undefined) {
      return this.#decided;
    }
    return this.#worthwhile && offset >= TRIAL_BYTES ? "stream" : "slices";
  }

  /** Takes the bytes acknowledged so far and the time, in milliseconds of any clock. */
  handleAcknowledgement(total: number, nowMs: number): void {
    if (!this.#worthwhile || this.#decided !== undefined) {
      return;
    }
    for (const [mark, at] of this.#marks) {
      if (total >= mark && Number.isNaN(at)) {
        this.#marks.set(mark, nowMs);
      }
    }
    if (total >= TRIAL_BYTES * 2) {
      this.#decided = this.#verdict();
    }
  }

  /** Gives up on the stream: it stalled, or this browser has none. */
  refuseStream(): void {
    this.#decided = "slices";
  }

  #verdict(): ReaderKind {
    const [slicesFrom = NaN, slicesTo = NaN, streamFrom = NaN, streamTo = NaN] = [
      ...this.#marks.values(),
    ];
    return slicesTo - slicesFrom > CLEARLY_FASTER * (streamTo - streamFrom) ? "stream" : "slices";
  }
}
