// Limits the bytes in flight to the server's window, which its acknowledgements reopen.

/**
 * Counts bytes sent and bytes acknowledged, and makes a sender wait for room.
 *
 * This bounds the memory at both ends: bytes that the server has not read are in this runtime's
 * send queue or in the network, and never exceed the window.
 */
export class SendWindow {
  readonly limit: number;
  #sent: number;
  #acknowledged: number;
  #shut = false;
  #paused = false;
  /** The sender that waits until at most `before` bytes are in flight. */
  #waiting: { before: number; resolve: (open: boolean) => void } | undefined;

  /** `acknowledged` is how many bytes the server already has, from an earlier connection. */
  constructor(limit: number, acknowledged = 0) {
    this.limit = limit;
    this.#sent = acknowledged;
    this.#acknowledged = acknowledged;
  }

  /**
   * Resolves to true once `bytes` more may be sent, or to false if the window was shut.
   *
   * `inFlightMax` is the sender's own limit on the bytes in flight.
   */
  async room(bytes: number, inFlightMax = this.limit): Promise<boolean> {
    const most = Math.min(this.limit, inFlightMax);
    if (bytes > most) {
      throw new RangeError(`${bytes} bytes do not fit into a window of ${most} bytes`);
    }
    const before = most - bytes;
    if (this.#shut || this.#isOpen(before)) {
      return !this.#shut;
    }
    return new Promise((resolve) => {
      this.#waiting = { before, resolve };
    });
  }

  /** Records that `bytes` more were sent. */
  handleSent(bytes: number): void {
    this.#sent += bytes;
  }

  /**
   * Records the total that the server has acknowledged.
   *
   * Returns false if the total is impossible: more than was sent, or less than before.
   */
  handleAcknowledgement(total: number): boolean {
    if (total > this.#sent || total < this.#acknowledged) {
      return false;
    }
    this.#acknowledged = total;
    this.#wake();
    return true;
  }

  /** Makes senders wait, or lets them continue. Acknowledgements of what was sent still count. */
  setPaused(paused: boolean): void {
    this.#paused = paused;
    this.#wake();
  }

  /** Ends all waiting; nothing more may be sent. */
  shut(): void {
    this.#shut = true;
    this.#wake();
  }

  get sent(): number {
    return this.#sent;
  }

  get acknowledged(): number {
    return this.#acknowledged;
  }

  get #inFlight(): number {
    return this.#sent - this.#acknowledged;
  }

  #isOpen(before: number): boolean {
    return !this.#paused && this.#inFlight <= before;
  }

  #wake(): void {
    const waiting = this.#waiting;
    if (waiting !== undefined && (this.#shut || this.#isOpen(waiting.before))) {
      this.#waiting = undefined;
      waiting.resolve(!this.#shut);
    }
  }
}
