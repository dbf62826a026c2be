// A question whose answer is kept up to date: it is asked again when it changes, and when lines
// have arrived since.

import type { Answer } from "./protocol.js";
import type { SideQuestion } from "./enquiry.js";

/** While lines arrive, a question is asked again at most this often. */
const ASK_EVERY_MS = 5_000;

/** A part of the page with a question of its own. */
export interface SidePanel {
  show(answer: Answer): void;
  /** The answer takes longer; `fraction` of the log was examined. */
  showProgress(fraction: number): void;
  /** The server does not answer the question, for this reason. */
  refuse(why: string): void;
}

export class StandingQuestion {
  readonly #ask: (question: SideQuestion | null) => void;
  #asked = "null";
  #askedAtMs = -Infinity;
  /** How many requests the log had then. */
  #requests = 0;

  /** `ask` asks a question; null withdraws it. */
  constructor(ask: (question: SideQuestion | null) => void) {
    this.#ask = ask;
  }

  /**
   * Asks the question unless its answer is up to date, and returns whether it did. The log has
   * `requests` requests so far; `isFinal` is true if no more will follow.
   */
  want(question: SideQuestion | null, requests: number, isFinal: boolean): boolean {
    const text = JSON.stringify(question);
    const hasGrown = question !== null && requests !== this.#requests;
    const now = performance.now();
    const isStale = hasGrown && (isFinal || now - this.#askedAtMs >= ASK_EVERY_MS);
    if (text === this.#asked && !isStale) {
      return false;
    }
    this.#asked = text;
    this.#askedAtMs = now;
    this.#requests = requests;
    this.#ask(question);
    return true;
  }
}
