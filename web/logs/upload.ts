// Sends the files over one connection, paced by the server's window.

import { Calibration } from "./calibration.js";
import { FileChain } from "./file-chain.js";
import type { ReaderKind } from "./file-reader.js";
import { SendWindow } from "./send-window.js";

/**
 * One upload, over as many connections as necessary: after each `resume` it continues at the byte
 * that the server has reached.
 */
export class Upload {
  readonly #chain: FileChain;
  readonly #calibration: Calibration;
  #window: SendWindow | undefined;
  #acknowledged = 0;

  /** `forced` fixes the way of reading. */
  constructor(
    files: readonly File[],
    reading: (kind: ReaderKind) => void,
    forced: ReaderKind | undefined,
  ) {
    const size = files.reduce((sum, file) => sum + file.size, 0);
    this.#calibration = new Calibration(size, forced);
    this.#chain = new FileChain(files, this.#calibration, reading);
  }

  /**
   * Sends the bytes from `acknowledged` on through `send`; resolves to true once all are sent, to
   * false if the upload was interrupted. Rejects if a file cannot be read.
   *
   * `isOpen` returns whether the connection still accepts bytes.
   */
  async run(
    windowBytes: number,
    acknowledged: number,
    send: (chunk: Blob | Uint8Array<ArrayBuffer>) => boolean,
  ): Promise<boolean> {
    this.interrupt();
    const window = new SendWindow(windowBytes, acknowledged);
    this.#window = window;
    this.#acknowledged = acknowledged;
    while (window.sent < this.#chain.size) {
      const { chunkBytes, inFlightBytes } = this.#chain.paceAt(window.sent);
      const bytesMax = Math.min(chunkBytes, window.limit);
      if (!(await window.room(bytesMax, inFlightBytes))) {
        return false;
      }
      const chunk = await this.#chain.next(window.sent, bytesMax);
      if (window !== this.#window || !send(chunk)) {
        return false;
      }
      window.handleSent(chunk instanceof Blob ? chunk.size : chunk.byteLength);
    }
    this.#chain.close();
    return true;
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
