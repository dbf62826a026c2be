// One log as the page sees it: the worker's reports, passed on a few times a second.

import { ownServer } from "../shared/live-socket.js";
import { element } from "../shared/page.js";
import { totalSize } from "../client/src/upload/file-chain.js";
import type { ReaderKind } from "../client/src/upload/file-reader.js";
import type { Ended, Failure, Source } from "./log-session.js";
import { storedKey } from "./key.js";
import { Progress } from "./progress.js";
import type { Answer, Question, Ready } from "./protocol.js";
import type { FromWorker, ToWorker } from "./session-messages.js";
import type { Summary } from "./summary.js";

/** Without a graphics card, painting competes with sending and parsing for the processor. */
const REPORT_EVERY_MS = 100;

export interface RunningEvents {
  /** The figures of everything read so far, at most a few times a second. */
  snapshot(summary: Summary, final: boolean): void;
  answer(answer: Answer): void;
  /** The server is ready, for the first time or again. */
  ready(ready: Ready): void;
  connection(isConnected: boolean): void;
  ended(ended: Ended): void;
}

export class RunningSession {
  name: string;
  readonly source: Source;
  readonly #progress: Progress | undefined;
  readonly #events: RunningEvents;
  readonly #worker = new Worker("/assets/session-worker.js", { type: "module" });
  #acknowledged = 0;
  #snapshot: { summary: Summary; final: boolean } | undefined;
  #reportedAtMs = -Infinity;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** The questions that have not been answered. */
  readonly #open = new Set<number>();
  #ended: Ended | undefined;

  constructor(source: Source, events: RunningEvents) {
    this.source = source;
    this.name = nameOf(source);
    this.#events = events;
    if (source.kind === "files") {
      this.#progress = new Progress({ name: this.name, size: totalSize(source.files) });
    }
    this.#worker.addEventListener("message", ({ data }) => this.#handle(data as FromWorker));
    this.#worker.addEventListener("error", (event) => this.#handleWorkerError(event));
    const reader = wantedReader();
    const url = ownServer("/logs/upload");
    this.#tell({
      type: "open",
      source,
      url,
      key: storedKey(),
      ...(reader === undefined ? {} : { reader }),
    });
  }

  /** Sends a query. Every query is answered, even after the session has ended. */
  ask(question: Question): void {
    if (question.type === "drop") {
      this.#open.delete(question.seq);
    } else {
      this.#open.add(question.seq);
    }
    if (this.#ended === undefined) {
      this.#tell({ type: "ask", question });
    } else {
      queueMicrotask(() => this.#refuseOpen());
    }
  }

  /** Stops sending; what the server has read can be queried as before. */
  stop(): void {
    this.#progress?.end("cancelled after");
    this.#tell({ type: "stop" });
  }

  /** Leaves the log as if the page was closed: the server keeps it for a while. */
  leave(): void {
    this.#tell({ type: "leave" });
  }

  /** Deletes the log from the server, also for those who view it. */
  discard(): void {
    this.#tell({ type: "discard" });
  }

  #tell(message: ToWorker): void {
    this.#worker.postMessage(message);
  }

  #handle(message: FromWorker): void {
    switch (message.type) {
      case "progress":
        this.#acknowledged = message.acknowledged;
        break;
      case "snapshot":
        this.#snapshot = message;
        break;
      case "answer":
        if (message.answer.type !== "searching") {
          this.#open.delete(message.answer.seq);
        }
        this.#events.answer(message.answer);
        return;
      case "connected":
        if (message.ready.files !== undefined) {
          this.name = nameOfAll(message.ready.files);
        }
        this.#events.ready(message.ready);
        this.#handleConnection(true);
        return;
      case "reconnecting":
        this.#handleConnection(false);
        return;
      case "reading":
        element("progress").dataset["reader"] = message.kind;
        return;
      case "ended":
        this.#report();
        this.#end(message.ended);
        return;
    }
    const wait = this.#reportedAtMs + REPORT_EVERY_MS - performance.now();
    this.#timer ??= setTimeout(() => this.#report(), wait);
  }

  #handleConnection(isConnected: boolean): void {
    this.#progress?.handleConnection(isConnected);
    this.#events.connection(isConnected);
  }

  /** A worker that could not be loaded has no message; one that threw has one. */
  #handleWorkerError({ message }: ErrorEvent): void {
    const failure: Failure =
      message === undefined ? { reason: "unreachable" } : { reason: "bug", message };
    this.#worker.terminate();
    this.#end({ kind: "failed", failure, acknowledged: this.#acknowledged });
  }

  #report(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#reportedAtMs = performance.now();
    const snapshot = this.#snapshot;
    this.#snapshot = undefined;
    this.#progress?.handleProgress(this.#acknowledged);
    if (snapshot !== undefined) {
      if (snapshot.final) {
        this.#progress?.end("read in");
      }
      this.#events.snapshot(snapshot.summary, snapshot.final);
    }
  }

  #end(ended: Ended): void {
    if (ended.kind === "cancelled" || ended.kind === "failed") {
      this.#progress?.end(ended.kind === "cancelled" ? "cancelled after" : "stopped after");
    }
    this.#ended = ended;
    this.#events.ended(ended);
    this.#refuseOpen();
  }

  #refuseOpen(): void {
    const [message, seqs] = [whyNotAsked(this.#ended), [...this.#open]];
    this.#open.clear();
    for (const seq of seqs) {
      this.#events.answer({ type: "refused", seq, code: "ended", message });
    }
  }
}

/** Returns why a log whose session has ended cannot be queried. */
function whyNotAsked(ended: Ended | undefined): string {
  switch (ended?.kind) {
    case "cancelled":
      return "reading was cancelled before the server accepted the log; read it again";
    case "failed":
      return "the server stopped reading this log and keeps nothing of it; read it again";
    default:
      return "the server no longer keeps this log; read it again";
  }
}

/** Returns the name of a log, as far as it is known before the server has answered. */
function nameOf(source: Source): string {
  switch (source.kind) {
    case "files":
      return nameOfAll(source.files);
    case "follow":
      return source.name;
    case "end":
    case "view":
      return "Shared log";
  }
}

/** Returns the name of a log: its first file, and how many more there are. */
function nameOfAll(files: readonly { name: string }[]): string {
  const [first, ...more] = files;
  return `${first?.name ?? ""}${more.length === 0 ? "" : ` and ${more.length} more`}`;
}

/** `/logs?reader=slices` and `?reader=stream` fix the way of reading, for measurements. */
function wantedReader(): ReaderKind | undefined {
  const wanted = new URLSearchParams(location.search).get("reader");
  return wanted === "slices" || wanted === "stream" ? wanted : undefined;
}
