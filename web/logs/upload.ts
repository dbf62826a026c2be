// One upload: the file goes out in pieces paced by the server, and figures come back.

import { Calibration } from "./calibration.js";
import {
  type FileReader,
  ReadStalled,
  type ReaderKind,
  SliceReader,
  StreamReader,
} from "./file-reader.js";
import {
  type ClientMessage,
  NotUnderstood,
  parseServerMessage,
  type ServerMessage,
  type Summary,
} from "./protocol.js";
import { SendWindow } from "./send-window.js";

/** How an upload ended. */
export type Outcome =
  | { kind: "finished" }
  | { kind: "cancelled"; acknowledged: number }
  | { kind: "failed"; failure: Failure; acknowledged: number };

export type Failure =
  /** The connection never came about, or the server didn't say that it is ready. */
  | { reason: "unreachable" }
  /** The connection ended before the last figures. */
  | { reason: "dropped" }
  /** The server refused the file. */
  | { reason: "refused"; code: string; message: string }
  /** The server sent what this page doesn't understand. */
  | { reason: "not_understood"; message: string }
  /** The file can't be read: it changed, shrank, moved, or its permissions forbid it. */
  | { reason: "unreadable" }
  /** This page's own code failed. */
  | { reason: "bug"; message: string };

/** What is told while an upload runs. */
export interface UploadListener {
  progress(acknowledged: number): void;
  snapshot(summary: Summary, final: boolean): void;
  /** The way of reading changed. */
  reading(kind: ReaderKind): void;
}

/** The server gets this long to accept the connection and say that it is ready. */
const READY_WITHIN_MS = 15_000;
const NORMAL_CLOSURE = 1000;

export class Upload {
  readonly #file: File;
  readonly #socket: WebSocket;
  readonly #listener: UploadListener;
  readonly #calibration: Calibration;
  readonly #readyTimer: ReturnType<typeof setTimeout>;
  #window: SendWindow | undefined;
  #settle: (outcome: Outcome) => void = () => undefined;
  /** How the upload ends; never rejects. */
  readonly outcome: Promise<Outcome>;

  /** Takes over `socket`, which must be connecting. `forced` skips the choice of a way to read. */
  constructor(file: File, socket: WebSocket, listener: UploadListener, forced?: ReaderKind) {
    this.#file = file;
    this.#socket = socket;
    this.#listener = listener;
    this.#calibration = new Calibration(file.size, forced);
    this.outcome = new Promise((resolve) => {
      this.#settle = resolve;
    });
    this.#readyTimer = setTimeout(() => this.#fail({ reason: "unreachable" }), READY_WITHIN_MS);
    socket.addEventListener("open", () => {
      this.#say({ type: "start", files: [{ name: file.name, size: file.size }] });
    });
    socket.addEventListener("message", ({ data }) => this.#handleMessage(data));
    socket.addEventListener("close", () => void this.#handleClose());
  }

  /** Tells the server to stop and forgets the file. */
  cancel(): void {
    if (this.#socket.readyState === this.#socket.OPEN) {
      this.#say({ type: "cancel" });
    }
    this.#end({ kind: "cancelled", acknowledged: this.#acknowledged });
  }

  #handleMessage(data: unknown): void {
    try {
      if (typeof data !== "string") {
        throw new NotUnderstood("a binary message");
      }
      this.#handle(parseServerMessage(data));
    } catch (error) {
      if (!(error instanceof NotUnderstood)) {
        throw error;
      }
      this.#fail({ reason: "not_understood", message: error.message });
    }
  }

  #handle(message: ServerMessage): void {
    switch (message.type) {
      case "files":
      case "refused": // This page follows and asks nothing yet.
        break;
      case "ready":
        this.#handleReady(message.window_bytes);
        break;
      case "ack":
        this.#handleAcknowledgement(message.bytes);
        break;
      case "snapshot":
        this.#listener.snapshot(message.summary, message.final);
        if (message.final) {
          this.#end({ kind: "finished" });
        }
        break;
      case "error":
        this.#fail({ reason: "refused", code: message.code, message: message.message });
        break;
    }
  }

  #handleReady(windowBytes: number): void {
    if (this.#window !== undefined || windowBytes < 1) {
      throw new NotUnderstood("ready for nothing, or twice");
    }
    clearTimeout(this.#readyTimer);
    this.#window = new SendWindow(windowBytes);
    this.#sendFile(this.#window).catch((error: unknown) => {
      // Browsers report whatever keeps them from reading a file as a DOMException.
      const isFile = error instanceof DOMException;
      this.#fail(isFile ? { reason: "unreadable" } : { reason: "bug", message: String(error) });
    });
  }

  #handleAcknowledgement(total: number): void {
    if (this.#window?.handleAcknowledgement(total) !== true) {
      throw new NotUnderstood(`acknowledgement of ${total} bytes`);
    }
    this.#calibration.handleAcknowledgement(total, performance.now());
    this.#listener.progress(total);
  }

  async #handleClose(): Promise<void> {
    if (this.#window === undefined) {
      this.#fail({ reason: "unreachable" });
      return;
    }
    // A slice that can't be read fails the connection too, and only the file tells the difference.
    const readable = await isReadable(this.#file, Math.min(this.#window.sent, this.#file.size - 1));
    this.#fail({ reason: readable ? "dropped" : "unreadable" });
  }

  async #sendFile(window: SendWindow): Promise<void> {
    const { size } = this.#file;
    const source = new FileSource(this.#file, this.#calibration, this.#listener);
    try {
      while (window.sent < size) {
        const { chunkBytes, inFlightBytes } = source.readerAt(window.sent);
        const bytesMax = Math.min(chunkBytes, window.limit, size - window.sent);
        if (!(await window.room(bytesMax, inFlightBytes))) {
          return;
        }
        const chunk = await source.next(window.sent, bytesMax);
        if (this.#socket.readyState !== this.#socket.OPEN) {
          return;
        }
        this.#socket.send(chunk);
        window.handleSent(chunk instanceof Blob ? chunk.size : chunk.byteLength);
      }
      this.#say({ type: "finish" });
    } finally {
      source.close();
    }
  }

  #say(message: ClientMessage): void {
    this.#socket.send(JSON.stringify(message));
  }

  #fail(failure: Failure): void {
    this.#end({ kind: "failed", failure, acknowledged: this.#acknowledged });
  }

  #end(outcome: Outcome): void {
    clearTimeout(this.#readyTimer);
    this.#window?.shut();
    this.#socket.close(NORMAL_CLOSURE);
    this.#settle(outcome);
  }

  get #acknowledged(): number {
    return this.#window?.acknowledged ?? 0;
  }
}

/** The file, read in whichever way the calibration says for the place it has come to. */
class FileSource {
  readonly #file: File;
  readonly #calibration: Calibration;
  readonly #listener: UploadListener;
  #reader: FileReader | undefined;
  #kind: ReaderKind | undefined;

  constructor(file: File, calibration: Calibration, listener: UploadListener) {
    this.#file = file;
    this.#calibration = calibration;
    this.#listener = listener;
  }

  /** Returns the reader for the bytes from `offset` on, where the last one stopped. */
  readerAt(offset: number): FileReader {
    const kind = this.#calibration.kindAt(offset);
    if (this.#reader === undefined || kind !== this.#kind) {
      this.#reader?.close();
      this.#reader = this.#open(kind, offset);
    }
    return this.#reader;
  }

  async next(offset: number, bytesMax: number): Promise<Blob | Uint8Array<ArrayBuffer>> {
    try {
      return await this.readerAt(offset).next(bytesMax);
    } catch (error) {
      if (!(error instanceof ReadStalled)) {
        throw error;
      }
      this.#calibration.refuseStream();
      return await this.readerAt(offset).next(bytesMax);
    }
  }

  close(): void {
    this.#reader?.close();
  }

  #open(kind: ReaderKind, offset: number): FileReader {
    this.#kind = kind;
    this.#listener.reading(kind);
    if (kind === "slices") {
      return new SliceReader(this.#file, offset);
    }
    try {
      return new StreamReader(this.#file, offset);
    } catch {
      this.#calibration.refuseStream();
      return this.#open("slices", offset);
    }
  }
}

async function isReadable(file: Blob, offset: number): Promise<boolean> {
  try {
    return (await file.slice(offset, offset + 1).arrayBuffer()).byteLength === 1;
  } catch {
    return false;
  }
}
