// Chooses the transport: WebSocket where it works, HTTP streaming where it is blocked.

import type { Transport } from "./link.js";

/** A transport that has worked counts as blocked only after this many failures in a row. */
const FAILURES_MAX = 3;

/** Tries the transports in order until one works, and stays with it. */
export class TransportChoice {
  readonly #transports: readonly Transport[];
  #index = 0;
  #isProven = false;
  #failures = 0;

  /** Throws a `TypeError` if there are none. */
  constructor(transports: readonly Transport[]) {
    if (transports.length === 0) {
      throw new TypeError("at least one transport is required");
    }
    this.#transports = transports;
  }

  get current(): Transport {
    return this.#transports[this.#index] as Transport;
  }

  /** The server has answered over the current transport. */
  handleSuccess(): void {
    this.#isProven = true;
    this.#failures = 0;
  }

  /**
   * The server could not be reached over the current transport. Returns whether another one should
   * be tried without waiting.
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
