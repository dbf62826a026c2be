// Finds out which way of reading is faster in this browser, on the first part of a large file.
//
// Measured against a server that does not parse, slices are 3 times as fast in Firefox and the
// stream is 1.8 times as fast in Chromium. A clock tells this more reliably than the name of the
// browser.

import type { ReaderKind } from "./file-reader.js";

const MIB = 1024 * 1024;
/** Each way reads this much; the first half fills the pipe, the second is timed. */
const TRIAL_BYTES = 32 * MIB;
/** Smaller files are sent in slices: they would end before the trial paid off. */
const WORTHWHILE_BYTES = 256 * MIB;
/** Slices are the simpler way, so the stream has to be clearly faster. */
const CLEARLY_FASTER = 1.1;

/** Chooses the way of reading for each part of one upload. */
export class Calibration {
  readonly #worthwhile: boolean;
  /** When the server acknowledged each mark of the trial, by byte. */
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

  /** Records the bytes acknowledged so far and the time, in milliseconds of any clock. */
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

  /** Rules out the stream: it stalled, or this browser does not support it. */
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
