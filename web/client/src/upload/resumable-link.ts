// A WebSocket that is opened again when it is lost.

import { retryDelayMs } from "../backoff.js";
import type { WebSocketLike } from "../environment.js";
import type { Chunk } from "./paced-files.js";

/** How long the server may take to accept a connection and report that it is ready. */
const READY_WITHIN_MS = 15_000;
const BACKOFF = { firstMs: 500, longestMs: 15_000 };
const OPEN = 1;

export interface LinkEvents {
  /** A message arrived. */
  message(data: unknown): void;
  /** The connection was lost; returns whether to open another one. */
  lost(reason: string): boolean | Promise<boolean>;
  /** Another connection will be opened. */
  reconnecting(): void;
  /**
   * No other connection will be opened: the first one could not be (`unreachable`), or the time for
   * reconnecting is over (`dropped`).
   */
  failed(why: "unreachable" | "dropped"): void;
}

/**
 * Keeps a connection open until it is closed. Whether the server is ready, on each connection, is
 * for the caller to find out from the messages.
 */
export class ResumableLink {
  readonly #connect: () => WebSocketLike;
  readonly #events: LinkEvents;
  readonly #resumeWithinMs: number;
  #socket: WebSocketLike;
  #isReady = false;
  /** True once the server was ready. */
  #wasReady = false;
  #isClosed = false;
  #attempt = 0;
  #lostAtMs: number | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `connect` opens a connection; `resumeWithinMs` is how long to try after a loss. */
  constructor(connect: () => WebSocketLike, events: LinkEvents, resumeWithinMs: number) {
    this.#connect = connect;
    this.#events = events;
    this.#resumeWithinMs = resumeWithinMs;
    this.#socket = this.#opened();
  }

  /** Records that the server is ready: the loss of this connection is the first one again. */
  handleReady(): void {
    clearTimeout(this.#timer);
    this.#isReady = true;
    this.#wasReady = true;
    this.#attempt = 0;
    this.#lostAtMs = undefined;
  }

  /** Sends a message; returns false while disconnected. */
  send(data: string | Chunk): boolean {
    const isOpen = this.isOpen;
    if (isOpen) {
      this.#socket.send(data);
    }
    return isOpen;
  }

  /** Ends the connection, and does not open another one. No event follows. */
  close(code?: number): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#socket.close(code);
  }

  get isOpen(): boolean {
    return this.#socket.readyState === OPEN;
  }

  /** True while there is a connection on which the server is ready. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** True until the server was ready for the first time. */
  get isFresh(): boolean {
    return !this.#wasReady;
  }

  #opened(): WebSocketLike {
    const socket = this.#connect();
    const isCurrent = () => socket === this.#socket && !this.#isClosed;
    this.#timer = setTimeout(() => isCurrent() && socket.close(), READY_WITHIN_MS);
    socket.onmessage = ({ data }: { data: unknown }) => isCurrent() && this.#events.message(data);
    socket.onclose = ({ reason }: { reason: string }) => {
      if (isCurrent()) {
        void this.#handleLoss(reason);
      }
    };
    // Every error is followed by `close`. Some implementations throw if nothing listens for it.
    socket.onerror = () => undefined;
    return socket;
  }

  async #handleLoss(reason: string): Promise<void> {
    clearTimeout(this.#timer);
    this.#isReady = false;
    const again = await this.#events.lost(reason);
    if (!again || this.#isClosed) {
      return;
    }
    if (!this.#wasReady) {
      this.#events.failed("unreachable");
      return;
    }
    this.#lostAtMs ??= performance.now();
    if (performance.now() - this.#lostAtMs > this.#resumeWithinMs) {
      this.#events.failed("dropped");
      return;
    }
    this.#events.reconnecting();
    const delayMs = retryDelayMs(BACKOFF, this.#attempt, Math.random);
    this.#timer = setTimeout(() => {
      this.#socket = this.#opened();
    }, delayMs);
    this.#attempt += 1;
  }
}
