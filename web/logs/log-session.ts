// One log at the server: sends its files, receives figures, and then asks queries.

import type { WebSocketLike } from "../client/src/environment.js";
import type { ReaderKind } from "../client/src/upload/file-reader.js";
import { PacedFiles } from "../client/src/upload/paced-files.js";
import { ResumableLink } from "../client/src/upload/resumable-link.js";
import { NotUnderstood } from "./fields.js";
import {
  type Answer,
  type ClientMessage,
  parseServerMessage,
  type Question,
  type Ready,
  type ServerMessage,
  type Uploads,
} from "./protocol.js";
import type { Summary } from "./summary.js";

/** Where the lines come from. */
export type Source =
  | {
      kind: "files";
      files: File[];
      format: string;
      rows: boolean;
      /** The secret of the upload to continue, if it was interrupted by a reload. */
      resume?: string;
    }
  /** A file that the server follows as it grows. */
  | { kind: "follow"; name: string }
  /** An upload, by the name in a link. */
  | { kind: "view"; name: string }
  /** An upload of this tab whose files are not available, so that the rest cannot be sent. */
  | { kind: "end"; id: string };

/** How a session ended, and how many bytes the server had acknowledged by then. */
export type Ended =
  | { kind: "cancelled"; acknowledged: number }
  | { kind: "failed"; failure: Failure; acknowledged: number }
  /** All figures had arrived; the server has dropped the log, so it cannot be queried any more. */
  | { kind: "forgotten" }
  /** The server does not have the log of a link; it keeps a log for this time without a page. */
  | { kind: "gone"; keptSeconds: number }
  /** The upload is continued on another page. */
  | { kind: "taken" };

export type Failure =
  /** The connection could not be opened, or the server did not report that it is ready. */
  | { reason: "unreachable" }
  /** The connection was lost and could not be resumed. */
  | { reason: "dropped" }
  /** The server refused the file. */
  | { reason: "refused"; code: string; message: string }
  /** The server sent something that this page does not understand. */
  | { reason: "not_understood"; message: string }
  /** The file cannot be read: it was changed, truncated or moved, or lacks permissions. */
  | { reason: "unreadable" }
  /** This page's own code failed. */
  | { reason: "bug"; message: string };

/** The events of a session. */
export interface SessionListener {
  progress(acknowledged: number): void;
  snapshot(summary: Summary, final: boolean): void;
  answer(answer: Answer): void;
  /** The server is ready, for the first time or again. */
  connected(ready: Ready): void;
  /** The connection was lost; the session is trying to reconnect. */
  reconnecting(): void;
  /** The way of reading changed. */
  reading(kind: ReaderKind): void;
}

/** How long to try to resume a lost connection. */
const RESUME_WITHIN_MS = 120_000;
const NORMAL_CLOSURE = 1000;
/** The server's reason for closing a connection whose upload is continued on another one. */
const TAKEN = "resumed elsewhere";

export class LogSession {
  readonly #source: Source;
  readonly #link: ResumableLink;
  /** The key to send if the server asks for one; may be empty. */
  readonly #key: string;
  readonly #listener: SessionListener;
  readonly #upload: PacedFiles | undefined;
  /** Unanswered queries, to be sent again on the next connection. */
  readonly #open = new Map<number, Question>();
  #id: string | undefined;
  #hasShownKey = false;
  #isComplete = false;
  /** True once the user has cancelled the rest of the files. */
  #isStopped = false;
  #isOver = false;
  #keptSeconds = 0;
  #settle: (ended: Ended) => void = () => undefined;
  /** Resolves with how the session ended; never rejects. */
  readonly ended: Promise<Ended>;

  /** `connect` opens a connection to the server; `forced` fixes the way of reading. */
  constructor(
    source: Source,
    connect: () => WebSocketLike,
    key: string,
    listener: SessionListener,
    forced?: ReaderKind,
  ) {
    this.#source = source;
    this.#key = key;
    this.#listener = listener;
    if (source.kind === "files") {
      this.#upload = new PacedFiles(source.files, (kind) => listener.reading(kind), forced);
      this.#id = source.resume;
    } else if (source.kind === "end") {
      this.#id = source.id;
      this.#isStopped = true;
    }
    this.ended = new Promise((resolve) => {
      this.#settle = resolve;
    });
    const events = {
      message: (data: unknown) => this.#handleMessage(data),
      lost: (reason: string) => this.#handleLoss(reason),
      reconnecting: () => listener.reconnecting(),
      failed: (why: "unreachable" | "dropped") => this.#giveUp(why),
    };
    this.#link = new ResumableLink(connect, events, RESUME_WITHIN_MS);
  }

  /** Sends a query, or drops one; an answer carries the same `seq`. */
  ask(question: Question): void {
    if (this.#isOver) {
      return;
    }
    if (question.type === "drop") {
      this.#open.delete(question.seq);
    } else {
      this.#open.set(question.seq, question);
    }
    if (this.#link.isReady) {
      this.#say(question);
    }
  }

  /**
   * Stops sending. The server keeps what has arrived, which can be queried as before. If it has not
   * accepted the files yet, the session ends.
   */
  stop(): void {
    if (this.#link.isFresh || this.#isOver) {
      this.cancel();
      return;
    }
    this.#isStopped = true;
    this.#upload?.interrupt();
    if (this.#link.isReady) {
      this.#say({ type: "stop" });
    }
  }

  /** Leaves the log as if the page was closed: the server keeps it for a while. */
  leave(): void {
    this.#isOver = true;
    this.#upload?.interrupt();
    this.#link.close();
    this.#settle({ kind: "taken" });
  }

  /** Tells the server that nothing is wanted any more, and releases the files. */
  cancel(): void {
    this.#say({ type: "cancel" });
    this.#end({ kind: "cancelled", acknowledged: this.#acknowledged });
  }

  /**
   * The server's first message says whether it requires a key; it repeats it once the key is right.
   */
  #handleOffer(uploads: Uploads): void {
    if (uploads === "closed") {
      return; // An error follows.
    }
    if (uploads !== "key") {
      this.#greet();
    } else if (!this.#hasShownKey) {
      this.#hasShownKey = true;
      this.#say({ type: "key", key: this.#key });
    }
  }

  #greet(): void {
    const source = this.#source;
    if (source.kind === "follow" || source.kind === "view") {
      this.#say({ type: source.kind, name: source.name });
    } else if (this.#id !== undefined) {
      this.#say({ type: "resume", id: this.#id });
    } else if (source.kind === "files") {
      const files = source.files.map(({ name, size }) => ({ name, size }));
      this.#say({ type: "start", files, format: source.format, rows: source.rows });
    }
  }

  #handleMessage(data: unknown): void {
    try {
      if (typeof data !== "string") {
        throw new NotUnderstood("unexpected binary message");
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
      case "ready":
        this.#handleReady(message);
        break;
      case "ack":
        this.#handleAcknowledgement(message.bytes);
        break;
      case "snapshot":
        this.#isComplete ||= message.final;
        this.#listener.snapshot(message.summary, message.final);
        break;
      case "searching":
        this.#listener.answer(message);
        break;
      case "changes":
      case "figures":
      case "latency":
      case "rates":
      case "rows":
      case "values":
      case "refused":
        this.#open.delete(message.seq);
        this.#listener.answer(message);
        break;
      case "files":
        this.#keptSeconds = message.kept_s;
        this.#handleOffer(message.uploads);
        break;
      case "error":
        this.#handleError(message.code, message.message);
        break;
    }
  }

  #handleReady(ready: Ready): void {
    const { id, window_bytes, bytes } = ready;
    const upload = this.#upload;
    const fits = upload === undefined || (window_bytes > 0 && bytes <= upload.size);
    if (this.#link.isReady || !fits) {
      throw new NotUnderstood("unexpected `ready` message");
    }
    this.#link.handleReady();
    this.#id = id;
    this.#listener.connected(ready);
    if (this.#isStopped && !this.#isComplete) {
      this.#say({ type: "stop" });
    } else if (upload !== undefined && !this.#isComplete) {
      this.#listener.progress(bytes);
      void this.#send(upload, window_bytes, bytes);
    }
    for (const question of this.#open.values()) {
      this.#say(question);
    }
  }

  async #send(upload: PacedFiles, windowBytes: number, bytes: number): Promise<void> {
    try {
      // A lost connection interrupts this before another one is opened.
      if (await upload.run(windowBytes, bytes, (chunk) => this.#link.send(chunk))) {
        this.#say({ type: "finish" });
      }
    } catch (error) {
      // Browsers report all errors while reading a file as a DOMException.
      const isFile = error instanceof DOMException;
      this.#fail(isFile ? { reason: "unreadable" } : { reason: "bug", message: String(error) });
    }
  }

  #handleAcknowledgement(total: number): void {
    if (this.#upload === undefined || this.#isStopped) {
      return; // A file that the server follows is not an upload that could be lost.
    }
    if (!this.#upload.handleAcknowledgement(total)) {
      throw new NotUnderstood(`impossible acknowledgement of ${total} bytes`);
    }
    this.#listener.progress(total);
  }

  #handleError(code: string, message: string): void {
    const hasFiles = this.#upload !== undefined && !this.#link.isFresh;
    if (this.#isComplete) {
      this.#end({ kind: "forgotten" });
    } else if (code === "unknown_session" && !hasFiles) {
      this.#end({ kind: "gone", keptSeconds: this.#keptSeconds });
    } else if (code === "unknown_session") {
      this.#fail({ reason: "dropped" });
    } else {
      this.#fail({ reason: "refused", code, message });
    }
  }

  /** Returns whether to open another connection. */
  async #handleLoss(reason: string): Promise<boolean> {
    const upload = this.#upload;
    this.#hasShownKey = false;
    if (reason === TAKEN) {
      this.#end({ kind: "taken" });
      return false;
    }
    const needsFiles = !this.#link.isFresh && !this.#isComplete && !this.#isStopped;
    if (upload !== undefined && needsFiles && !(await upload.isReadable())) {
      this.#fail({ reason: "unreadable" });
    }
    upload?.interrupt();
    return !this.#isOver;
  }

  #giveUp(why: "unreachable" | "dropped"): void {
    if (this.#isComplete) {
      this.#end({ kind: "forgotten" });
    } else {
      this.#fail({ reason: why });
    }
  }

  #say(message: ClientMessage): void {
    this.#link.send(JSON.stringify(message));
  }

  #fail(failure: Failure): void {
    this.#end({ kind: "failed", failure, acknowledged: this.#acknowledged });
  }

  #end(ended: Ended): void {
    this.#isOver = true;
    this.#upload?.interrupt();
    this.#link.close(NORMAL_CLOSURE);
    this.#settle(ended);
  }

  get #acknowledged(): number {
    return this.#upload?.acknowledged ?? 0;
  }
}
