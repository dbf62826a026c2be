// Which transport to try: WebSocket where it works, HTTP streaming where it is blocked.

import type { Transport } from "./link.js";

/** A transport that has worked is blocked only if it fails this often in a row. */
const FAILURES_MAX = 3;

/** Goes through the transports in their order until one works, and stays with it. */
export class TransportChoice {
  readonly #transports: readonly Transport[];
  #index = 0;
  #isProven = false;
  #failures = 0;

  /** Throws a `TypeError` if there are none. */
  constructor(transports: readonly Transport[]) {
    if (transports.length === 0) {
      throw new TypeError("there must be at least one transport");
    }
    this.#transports = transports;
  }

  get current(): Transport {
    return this.#transports[this.#index] as Transport;
  }

  /** The server has answered by the current transport. */
  handleSuccess(): void {
    this.#isProven = true;
    this.#failures = 0;
  }

  /**
   * The server could not be reached by the current transport. Returns whether there is another one
   * that is worth a try without waiting.
   */
  handleFailure(): boolean {
    this.#failures += 1;
    if (this.#isProven && this.#failures < FAILURES_MAX) {
      return false;
    }
    this.#isProven = false;
    this.#failures = 0;
    this.#index = (this.#index + 1) % this.#transports.length;
    return this.#index !== 0;
  }
}
