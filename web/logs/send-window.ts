// How much of the file may be on its way: the server's window, paid back by its acknowledgements.

/**
 * Counts bytes sent and bytes acknowledged, and lets a sender wait for room.
 *
 * Both ends stay bounded by it: what the server hasn't read lies in this browser's send queue or in
 * the network, and there is never more of it than the window.
 */
export class SendWindow {
  readonly limit: number;
  #sent = 0;
  #acknowledged = 0;
  #shut = false;
  #waiting: { bytes: number; resolve: (open: boolean) => void } | undefined;

  constructor(limit: number) {
    this.limit = limit;
  }

  /** Resolves once `bytes` more may be sent: true, or false when the window was shut instead. */
  async room(bytes: number): Promise<boolean> {
    if (bytes > this.limit) {
      throw new RangeError(`${bytes} bytes never fit a window of ${this.limit}`);
    }
    if (this.#shut || this.#fits(bytes)) {
      return !this.#shut;
    }
    return new Promise((resolve) => {
      this.#waiting = { bytes, resolve };
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

  #fits(bytes: number): boolean {
    return this.#sent - this.#acknowledged + bytes <= this.limit;
  }

  #wake(): void {
    const waiting = this.#waiting;
    if (waiting !== undefined && (this.#shut || this.#fits(waiting.bytes))) {
      this.#waiting = undefined;
      waiting.resolve(!this.#shut);
    }
  }
}
