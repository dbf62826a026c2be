// Uploads files over one connection, several at a time.

import { type Environment, environmentWith, type WebSocketConstructor } from "../environment.js";
import { findWebSocket } from "../find-websocket.js";
import { FileUpload } from "./file-upload.js";
import {
  type ClientMessage,
  NotUnderstood,
  parseServerMessage,
  type ServerMessage,
  SUBPROTOCOL,
} from "./messages.js";
import type { Chunk } from "./paced-files.js";
import { ResumableLink } from "./resumable-link.js";

export interface UploaderOptions {
  /** How many files to send at a time, 3 by default. */
  filesMax?: number;
  /** How long to try to reconnect, in milliseconds; 120,000 by default. */
  reconnectForMs?: number;
  /** Parts of this runtime to replace, such as `{ WebSocket }`. */
  environment?: Partial<Environment>;
}

/** How often an upload begins again because the server has forgotten it. */
const RESTARTS_MAX = 3;
const NORMAL_CLOSURE = 1000;

/** A file that has a number on this connection. */
interface Transfer {
  number: number;
  file: FileUpload;
}

/**
 * Uploads files to one address. The connection is opened when there is a file to send, opened again
 * when it is lost, and closed when all files have been sent.
 */
export class Uploader {
  readonly #url: string;
  readonly #environment: Environment;
  readonly #filesMax: number;
  readonly #reconnectForMs: number;
  /** The files that have not ended, in the order in which they were added. */
  readonly #files = new Set<FileUpload>();
  readonly #restarts = new Map<FileUpload, number>();
  /** The files that the server knows on this connection, by their numbers. */
  readonly #transfers = new Map<number, Transfer>();
  #number = 0;
  #hello: (ServerMessage & { type: "hello" }) | undefined;
  #link: ResumableLink | undefined;
  #isOpening = false;

  /** `url` is the WebSocket address of the server's handler. */
  constructor(url: string | URL, options: UploaderOptions = {}) {
    this.#url = String(url);
    this.#environment = environmentWith(options.environment);
    this.#filesMax = Math.max(1, options.filesMax ?? 3);
    this.#reconnectForMs = options.reconnectForMs ?? 120_000;
  }

  /**
   * Adds a file. A `Blob` without a name needs one. `id` continues an upload that an earlier
   * uploader began: the file must be the same.
   */
  add(file: Blob, options: { name?: string; id?: string } = {}): FileUpload {
    const name = options.name ?? (file as Partial<File>).name;
    if (name === undefined) {
      throw new TypeError("a Blob has no name: pass { name }");
    }
    const owner = {
      changed: () => this.#advance(),
      cancelled: (upload: FileUpload) => this.#cancel(upload),
    };
    const upload = new FileUpload(owner, file, name, options.id, this.#canSendBlobs);
    this.#files.add(upload);
    this.#advance();
    return upload;
  }

  /** Ends the connection; promises reject. The server keeps unfinished uploads for a while. */
  close(): void {
    this.#failAll("closed", "the uploader was closed");
  }

  /** Packages for Node.js before version 22 may not be able to send a `Blob`. */
  get #canSendBlobs(): boolean {
    return this.#environment.WebSocket !== undefined;
  }

  /** Does what is due: opens or closes the connection, and begins files. */
  #advance(): void {
    const link = this.#link;
    if (this.#files.size === 0) {
      link?.close(NORMAL_CLOSURE);
      this.#forgetLink();
    } else if (link === undefined) {
      void this.#open();
    } else if (this.#hello !== undefined) {
      this.#beginFiles(link, this.#hello.uploads_max);
    }
  }

  #beginFiles(link: ResumableLink, uploadsMax: number): void {
    const begun = new Set([...this.#transfers.values()].map(({ file }) => file));
    const active = [...begun].filter((file) => file.state !== "paused").length;
    let free = Math.min(this.#filesMax - active, uploadsMax - begun.size);
    for (const file of this.#files) {
      if (free > 0 && !begun.has(file) && file.state !== "paused") {
        free -= 1;
        this.#begin(link, file);
      }
    }
  }

  #begin(link: ResumableLink, file: FileUpload): void {
    this.#number += 1;
    const upload = this.#number;
    this.#transfers.set(upload, { number: upload, file });
    const { id, name, size } = file;
    const begin: ClientMessage =
      id === undefined
        ? { type: "start", upload, name, size }
        : { type: "resume", upload, id, name, size };
    link.send(JSON.stringify(begin));
  }

  async #open(): Promise<void> {
    if (this.#isOpening) {
      return;
    }
    this.#isOpening = true;
    try {
      const WebSocket = await findWebSocket(this.#environment);
      if (this.#files.size > 0) {
        this.#link = this.#linkWith(WebSocket);
      }
    } catch (error) {
      this.#failAll("unreachable", String(error));
    } finally {
      this.#isOpening = false;
    }
  }

  #linkWith(WebSocket: WebSocketConstructor): ResumableLink {
    const connect = () => new WebSocket(this.#url, [SUBPROTOCOL]);
    const events = {
      message: (data: unknown) => this.#handleData(data),
      lost: () => this.#handleLoss(),
      reconnecting: () => undefined,
      failed: (why: "unreachable" | "dropped") =>
        this.#failAll(
          why,
          why === "unreachable"
            ? `cannot connect to ${this.#url}`
            : "the connection was lost and could not be opened again",
        ),
    };
    return new ResumableLink(connect, events, this.#reconnectForMs);
  }

  #handleData(data: unknown): void {
    try {
      this.#handle(parseServerMessage(data));
    } catch (error) {
      if (!(error instanceof NotUnderstood)) {
        throw error;
      }
      this.#failAll("not_understood", error.message);
    }
  }

  #handle(message: ServerMessage): void {
    if (message.type === "hello") {
      this.#hello = message;
      this.#link?.handleReady();
      this.#advance();
      return;
    }
    if (message.type === "failed") {
      this.#failAll(message.code, message.message);
      return;
    }
    const transfer = this.#transfers.get(message.upload);
    if (transfer === undefined) {
      return; // It was cancelled while the message was under way.
    }
    switch (message.type) {
      case "ready":
        this.#handleReady(transfer, message.id, message.offset);
        break;
      case "ack":
        if (!transfer.file.handleAcknowledgement(message.bytes)) {
          throw new NotUnderstood(`impossible acknowledgement of ${message.bytes} bytes`);
        }
        break;
      case "done":
        this.#remove(transfer.file);
        transfer.file.succeed(message.result);
        this.#advance();
        break;
      case "error":
        this.#handleError(transfer, message.code, message.message);
        break;
    }
  }

  #handleReady(transfer: Transfer, id: string, offset: number): void {
    const { file } = transfer;
    const link = this.#link;
    const windowBytes = this.#hello?.window_bytes ?? 0;
    if (offset > file.size || windowBytes === 0 || link === undefined) {
      throw new NotUnderstood("unexpected `ready` message");
    }
    file.handleReady(id, offset);
    const isCurrent = () => this.#transfers.get(transfer.number) === transfer;
    const send = async (chunk: Chunk, at: number) => {
      const bytes = chunk instanceof Blob && !this.#canSendBlobs ? await bytesOf(chunk) : chunk;
      const data: ClientMessage = { type: "data", upload: transfer.number, offset: at };
      return isCurrent() && link.send(JSON.stringify(data)) && link.send(bytes);
    };
    file.run(windowBytes, offset, send).catch((error: unknown) => {
      this.#fail(file, "unreadable", `the file cannot be read: ${String(error)}`);
    });
  }

  #handleError(transfer: Transfer, code: string, message: string): void {
    const { file } = transfer;
    const restarts = this.#restarts.get(file) ?? 0;
    const isGone = code === "unknown_upload" && file.id !== undefined;
    if ((code !== "expired" && !isGone) || restarts >= RESTARTS_MAX) {
      this.#fail(file, code, message);
      return;
    }
    // The server may have stored the upload nevertheless; if not, it begins again.
    this.#restarts.set(file, restarts + 1);
    this.#transfers.delete(transfer.number);
    file.interrupt();
    if (isGone) {
      file.forgetId();
    }
    this.#advance();
  }

  /** Returns whether there are files to send over another connection. */
  async #handleLoss(): Promise<boolean> {
    this.#hello = undefined;
    const begun = [...this.#transfers.values()].map(({ file }) => file);
    this.#transfers.clear();
    // Browsers close the connection if a slice that they send cannot be read.
    const readable = await Promise.all(begun.map((file) => file.isReadable()));
    for (const [index, file] of begun.entries()) {
      file.interrupt();
      if (readable[index] === false) {
        this.#fail(file, "unreadable", "the file was changed, moved or deleted");
      }
    }
    return this.#files.size > 0;
  }

  #cancel(file: FileUpload): void {
    for (const { number } of [...this.#transfers.values()].filter((it) => it.file === file)) {
      this.#link?.send(JSON.stringify({ type: "cancel", upload: number } satisfies ClientMessage));
    }
    this.#remove(file);
    this.#advance();
  }

  #fail(file: FileUpload, code: string, message: string): void {
    this.#remove(file);
    file.fail(code, message);
    this.#advance();
  }

  #failAll(code: string, message: string): void {
    const files = [...this.#files];
    this.#files.clear();
    this.#advance();
    for (const file of files) {
      file.fail(code, message);
    }
  }

  #remove(file: FileUpload): void {
    this.#files.delete(file);
    this.#restarts.delete(file);
    for (const transfer of [...this.#transfers.values()]) {
      if (transfer.file === file) {
        this.#transfers.delete(transfer.number);
      }
    }
  }

  #forgetLink(): void {
    this.#link = undefined;
    this.#hello = undefined;
    this.#transfers.clear();
    this.#restarts.clear();
  }
}

async function bytesOf(blob: Blob): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await blob.arrayBuffer());
}
