// One file that is uploaded, as the application sees it.

import { Emitter, type Listener } from "../emitter.js";
import { type Chunk, PacedFiles } from "./paced-files.js";

export type UploadState =
  /** Waits for other files, or for a connection. */
  "waiting" | "sending" | "paused" | "done" | "failed" | "cancelled";

export interface UploadEvents {
  /** The server has stored more; both are in bytes. */
  progress: { acknowledged: number; size: number };
  state: UploadState;
  /** The server has assigned the secret with which this upload can be resumed later. */
  id: string;
}

/** Why an upload failed. */
export class UploadError extends Error {
  override readonly name = "UploadError";

  constructor(
    /**
     * A code of the server (docs/library/uploads.md), or `cancelled`, `closed`, `dropped`,
     * `not_understood`, `unreachable` or `unreadable`.
     */
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** What a file needs of the uploader. */
export interface UploadOwner {
  /** The state of a file has changed: others may be due. */
  changed(): void;
  /** The file was cancelled by the application. */
  cancelled(upload: FileUpload): void;
}

/** A file on its way to the server. */
export class FileUpload {
  readonly name: string;
  readonly size: number;
  /** Resolves with the server's result, or rejects with an `UploadError`. */
  readonly finished: Promise<unknown>;
  readonly #files: PacedFiles;
  readonly #owner: UploadOwner;
  readonly #events = new Emitter<UploadEvents>();
  #id: string | undefined;
  #isPaused = false;
  #isSending = false;
  #ended: "done" | "failed" | "cancelled" | undefined;
  #resolve: (result: unknown) => void = () => undefined;
  #reject: (error: UploadError) => void = () => undefined;

  /** @internal Applications call `Uploader.add`. */
  constructor(
    owner: UploadOwner,
    file: Blob,
    name: string,
    id: string | undefined,
    canSendBlobs: boolean,
  ) {
    this.#owner = owner;
    this.#files = new PacedFiles([file], undefined, canSendBlobs ? undefined : "slices");
    this.name = name;
    this.size = file.size;
    this.#id = id;
    this.finished = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // A failure that the application does not await is not an unhandled rejection.
    this.finished.catch(() => undefined);
  }

  /** The secret with which the upload can be resumed; undefined until the server has begun it. */
  get id(): string | undefined {
    return this.#id;
  }

  get state(): UploadState {
    if (this.#ended !== undefined) {
      return this.#ended;
    }
    return this.#isPaused ? "paused" : this.#isSending ? "sending" : "waiting";
  }

  /** How many bytes the server has stored. */
  get acknowledged(): number {
    return this.#files.acknowledged;
  }

  /** Adds a listener; returns a function that removes it. */
  on<Name extends keyof UploadEvents>(
    name: Name,
    listener: Listener<UploadEvents[Name]>,
  ): () => void {
    return this.#events.on(name, listener);
  }

  /** Stops sending until `resume` is called. The server keeps what has arrived for a while. */
  pause(): void {
    this.#setPaused(true);
  }

  resume(): void {
    this.#setPaused(false);
  }

  /** Ends the upload; the server deletes what has arrived. */
  cancel(): void {
    if (this.#ended === undefined) {
      this.#owner.cancelled(this);
      this.#end("cancelled");
      this.#reject(new UploadError("cancelled", "the upload was cancelled"));
    }
  }

  #setPaused(paused: boolean): void {
    if (this.#ended === undefined && paused !== this.#isPaused) {
      this.#isPaused = paused;
      this.#files.setPaused(paused);
      this.#events.emit("state", this.state);
      this.#owner.changed();
    }
  }

  /** @internal The server is ready for the bytes from `offset` on. */
  handleReady(id: string | undefined, offset: number): void {
    this.#isSending = true;
    if (id !== this.#id) {
      this.#id = id;
      this.#events.emit("id", id ?? "");
    }
    this.#events.emit("state", this.state);
    this.#events.emit("progress", { acknowledged: offset, size: this.size });
  }

  /** @internal Sends the bytes from `offset` on. Rejects if the file cannot be read. */
  async run(
    windowBytes: number,
    offset: number,
    send: (chunk: Chunk, offset: number) => boolean | Promise<boolean>,
  ): Promise<void> {
    // With a quarter of the window, the next chunk is on its way when the last one is stored.
    await this.#files.run(windowBytes, offset, send, Math.max(1, Math.floor(windowBytes / 4)));
  }

  /** @internal Returns whether the number of bytes is possible. */
  handleAcknowledgement(bytes: number): boolean {
    const isPossible = this.#files.handleAcknowledgement(bytes);
    if (isPossible) {
      this.#events.emit("progress", { acknowledged: bytes, size: this.size });
    }
    return isPossible;
  }

  /** @internal The connection is lost, or the server does not have the upload any more. */
  interrupt(): void {
    this.#files.interrupt();
    if (this.#isSending) {
      this.#isSending = false;
      this.#events.emit("state", this.state);
    }
  }

  /** @internal The next connection begins from the first byte. */
  forgetId(): void {
    this.#id = undefined;
  }

  /** @internal */
  isReadable(): Promise<boolean> {
    return this.#files.isReadable();
  }

  /** @internal */
  succeed(result: unknown): void {
    if (this.#ended === undefined) {
      this.#events.emit("progress", { acknowledged: this.size, size: this.size });
      this.#end("done");
      this.#resolve(result);
    }
  }

  /** @internal */
  fail(code: string, message: string): void {
    if (this.#ended === undefined) {
      this.#end("failed");
      this.#reject(new UploadError(code, message));
    }
  }

  #end(how: "done" | "failed" | "cancelled"): void {
    this.#ended = how;
    this.#files.interrupt();
    this.#events.emit("state", how);
  }
}
