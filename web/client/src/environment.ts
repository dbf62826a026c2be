// What the client takes from where it runs: sockets, HTTP, time and chance.

/** The part of the WHATWG `WebSocket` that is used. */
export interface WebSocketLike {
  binaryType: string;
  readonly protocol: string;
  send(data: string | Uint8Array<ArrayBuffer>): void;
  close(code?: number, reason?: string): void;
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
}

export type WebSocketConstructor = new (url: string, subprotocols: string[]) => WebSocketLike;

/** Where the client runs; each part can be replaced, as tests and older runtimes do. */
export interface Environment {
  /** `undefined` if there is none: HTTP streaming is used then. */
  readonly WebSocket: WebSocketConstructor | undefined;
  readonly fetch: typeof globalThis.fetch;
  /** Calls `callback` once after `delayMs`; returns what cancels that. */
  readonly after: (delayMs: number, callback: () => void) => () => void;
  /** A clock in milliseconds that never goes back. */
  readonly now: () => number;
  /** A number from 0 up to 1. */
  readonly random: () => number;
}

/** Delays beyond what timers of browsers hold (2³¹ − 1 ms) fire at once there. */
const DELAY_MS_MAX = 2_147_483_647;

/** Returns the environment of this runtime with the parts in `given` replaced. */
export function environmentWith(given: Partial<Environment> = {}): Environment {
  return {
    WebSocket: globalThis.WebSocket as WebSocketConstructor | undefined,
    fetch: (...request) => globalThis.fetch(...request),
    after(delayMs, callback) {
      const timer = setTimeout(callback, Math.min(delayMs, DELAY_MS_MAX));
      return () => clearTimeout(timer);
    },
    now: () => performance.now(),
    random: Math.random,
    ...given,
  };
}
