// How much of the file may be on its way: the server's window, paid back by its acknowledgements.

/**
 * Counts bytes sent and bytes acknowledged, and lets a sender wait for room.
 *
 * Both ends stay bounded by it: what the server hasn't read lies in this browser's send queue or in
 * the network, and there is never more of it than the window.
 */
export class SendWindow {
  readonly limit: number;
  #sent: number;
  #acknowledged: number;
  #shut = false;
  /** Who waits until no more than `before` bytes are on their way. */
  #waiting: { before: number; resolve: (open: boolean) => void } | undefined;

  /** `acknowledged` is how many bytes the server already has, from an earlier connection. */
  constructor(limit: number, acknowledged = 0) {
    this.limit = limit;
    this.#sent = acknowledged;
    this.#acknowledged = acknowledged;
  }

  /**
   * Resolves once `bytes` more may be sent: true, or false when the window was shut instead.
   *
   * `inFlightMax` is how much the sender itself wants on the way at most.
   */
  async room(bytes: number, inFlightMax = this.limit): Promise<boolean> {
    const most = Math.min(this.limit, inFlightMax);
    if (bytes > most) {
      throw new RangeError(`${bytes} bytes never fit a window of ${most}`);
    }
    const before = most - bytes;
    if (this.#shut || this.#inFlight <= before) {
      return !this.#shut;
    }
    return new Promise((resolve) => {
      this.#waiting = { before, resolve };
    });
  }

  /** Takes note that `bytes` more were sent. */
  handleSent(bytes: number): void {
    this.#sent += bytes;
  }

  /**
   * Takes the server's total so far.
   *
   * Returns false when the total can't be true: more than was sent, or less than before.
   */
  handleAcknowledgement(total: number): boolean {
    if (total > this.#sent || total < this.#acknowledged) {
      return false;
    }
    this.#acknowledged = total;
    this.#wake();
    return true;
  }

  /** Ends all waiting; nothing more is to be sent. */
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

  #wake(): void {
    const waiting = this.#waiting;
    if (waiting !== undefined && (this.#shut || this.#inFlight <= waiting.before)) {
      this.#waiting = undefined;
      waiting.resolve(!this.#shut);
    }
  }
}
