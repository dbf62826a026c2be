// Files as bytes that are sent one after the other, paced by the server's window.

import { Calibration } from "./calibration.js";
import { FileChain, totalSize } from "./file-chain.js";
import type { ReaderKind } from "./file-reader.js";
import { SendWindow } from "./send-window.js";

/** Bytes to send: a slice of a file, which the runtime reads when it sends it, or a buffer. */
export type Chunk = Blob | Uint8Array<ArrayBuffer>;

/**
 * Sends files over as many connections as necessary: after each loss it continues at the byte that
 * the server has reached. The protocol around the bytes belongs to the caller.
 */
export class PacedFiles {
  readonly #chain: FileChain;
  readonly #calibration: Calibration;
  #window: SendWindow | undefined;
  #acknowledged = 0;
  #paused = false;

  /** `reading` is called whenever a way of reading is chosen; `forced` fixes the way of reading. */
  constructor(
    files: readonly Blob[],
    reading: (kind: ReaderKind) => void = () => undefined,
    forced?: ReaderKind,
  ) {
    this.#calibration = new Calibration(totalSize(files), forced);
    this.#chain = new FileChain(files, this.#calibration, reading);
  }

  /**
   * Sends the bytes from `acknowledged` on, in chunks of at most `chunkBytesMax`; resolves to true
   * once all are sent, to false if this was interrupted. Rejects if a file cannot be read.
   *
   * `send` gets each chunk with its offset, and returns whether the connection accepted it. A
   * `Uint8Array` is valid until `send` returns.
   */
  async run(
    windowBytes: number,
    acknowledged: number,
    send: (chunk: Chunk, offset: number) => boolean | Promise<boolean>,
    chunkBytesMax = windowBytes,
  ): Promise<boolean> {
    this.interrupt();
    const window = new SendWindow(windowBytes, acknowledged);
    window.setPaused(this.#paused);
    this.#window = window;
    this.#acknowledged = acknowledged;
    while (window.sent < this.#chain.size) {
      const { chunkBytes, inFlightBytes } = this.#chain.paceAt(window.sent);
      const bytesMax = Math.min(chunkBytes, window.limit, chunkBytesMax);
      if (!(await window.room(bytesMax, inFlightBytes))) {
        return false;
      }
      const chunk = await this.#chain.next(window.sent, bytesMax);
      if (window !== this.#window || !(await send(chunk, window.sent))) {
        return false;
      }
      window.handleSent(chunk instanceof Blob ? chunk.size : chunk.byteLength);
    }
    this.#chain.close();
    return true;
  }

  /** Stops sending until it is called with false; this outlasts lost connections. */
  setPaused(paused: boolean): void {
    this.#paused = paused;
    this.#window?.setPaused(paused);
  }

  /** Records the server's total so far; returns whether it is possible. */
  handleAcknowledgement(total: number): boolean {
    if (this.#window?.handleAcknowledgement(total) !== true) {
      return false;
    }
    this.#acknowledged = total;
    this.#calibration.handleAcknowledgement(total, performance.now());
    return true;
  }

  /** Stops sending because the connection is lost. */
  interrupt(): void {
    this.#window?.shut();
    this.#window = undefined;
    this.#chain.close();
  }

  /** Returns whether the file is readable: a slice that is not fails the connection, too. */
  isReadable(): Promise<boolean> {
    return this.#chain.isReadable(this.#window?.sent ?? this.#acknowledged);
  }

  get size(): number {
    return this.#chain.size;
  }

  get acknowledged(): number {
    return this.#acknowledged;
  }
}
