// A WebSocket that reconnects: opens, reports its state, and retries with backoff when it is lost.
// It stops if the server refuses to let this page open it.

import { retryDelayMs } from "./backoff.js";

/** After a connection has been open for this long, the delay starts from the shortest again. */
const SETTLED_MS = 5_000;

export type LiveState =
  | { kind: "connecting" }
  | { kind: "open" }
  | { kind: "lost"; retryInMs: number }
  | { kind: "refused" };

export interface LiveSocketEvents {
  message(text: string): void;
  state(state: LiveState): void;
}

/** Keeps one WebSocket to `path` on this page's server open for as long as the page is open. */
export class LiveSocket {
  readonly #path: string;
  readonly #url: string;
  readonly #events: LiveSocketEvents;
  #socket: WebSocket | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #attempt = 0;

  constructor(path: string, events: LiveSocketEvents) {
    this.#path = path;
    this.#url = ownServer(path);
    this.#events = events;
    this.#connect();
  }

  /** Sends `text` if the connection is open; returns whether it was. */
  send(text: string): boolean {
    if (this.#socket?.readyState !== WebSocket.OPEN) {
      return false;
    }
    this.#socket.send(text);
    return true;
  }

  /** Skips the rest of the wait before the next attempt. */
  retryNow(): void {
    if (this.#timer !== undefined) {
      clearTimeout(this.#timer);
      this.#connect();
    }
  }

  #connect(): void {
    this.#timer = undefined;
    this.#events.state({ kind: "connecting" });
    const socket = new WebSocket(this.#url);
    let openedAt = Infinity;
    socket.addEventListener("open", () => {
      openedAt = performance.now();
      this.#events.state({ kind: "open" });
    });
    socket.addEventListener("message", ({ data }) => {
      if (typeof data === "string") {
        this.#events.message(data);
      }
    });
    socket.addEventListener("close", () => {
      if (performance.now() - openedAt > SETTLED_MS) {
        this.#attempt = 0;
      }
      void this.#handleClose(openedAt !== Infinity);
    });
    this.#socket = socket;
  }

  async #handleClose(wasOpen: boolean): Promise<void> {
    if (!wasOpen && (await isForbidden(this.#path))) {
      this.#events.state({ kind: "refused" });
    } else {
      this.#scheduleRetry();
    }
  }

  #scheduleRetry(): void {
    const retryInMs = retryDelayMs(this.#attempt);
    this.#attempt += 1;
    this.#events.state({ kind: "lost", retryInMs });
    this.#timer = setTimeout(() => this.#connect(), retryInMs);
  }
}

/** Asks over HTTP why a WebSocket did not open: browsers hide the status of the handshake. */
async function isForbidden(path: string): Promise<boolean> {
  try {
    const response = await fetch(path, { cache: "no-store" });
    return response.status === 403;
  } catch {
    return false;
  }
}

/** Returns the WebSocket URL of `path` on this page's server. */
export function ownServer(path: string): string {
  const url = new URL(path, location.href);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return url.href;
}
