// Counts what a subscription receives, in total and per second.

/** Figures of a window. */
export interface Rate {
  messages: number;
  bytes: number;
}

export class Meter {
  /** Messages since the last reset. */
  messages = 0;
  /** Bytes of their payloads. */
  bytes = 0;
  /** Deliveries: messages that arrived together count once. */
  batches = 0;
  #before: Rate = { messages: 0, bytes: 0 };

  /** Counts messages that arrived together. */
  add(messages: number, bytes: number): void {
    this.messages += messages;
    this.bytes += bytes;
    this.batches += 1;
  }

  /** Returns the mean rates of the last `seconds`, and begins another window. */
  take(seconds: number): Rate {
    const { messages, bytes } = this.#before;
    this.#before = { messages: this.messages, bytes: this.bytes };
    if (seconds <= 0) {
      return { messages: 0, bytes: 0 };
    }
    return {
      messages: (this.messages - messages) / seconds,
      bytes: (this.bytes - bytes) / seconds,
    };
  }

  reset(): void {
    this.messages = 0;
    this.bytes = 0;
    this.batches = 0;
    this.#before = { messages: 0, bytes: 0 };
  }
}
