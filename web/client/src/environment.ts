// What the client needs of its runtime: sockets, HTTP, time and randomness.

/** The part of the WHATWG `WebSocket` that is used. */
export interface WebSocketLike {
  binaryType: string;
  readonly protocol: string;
  readonly readyState: number;
  send(data: string | Blob | Uint8Array<ArrayBuffer>): void;
  close(code?: number, reason?: string): void;
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
}

export type WebSocketConstructor = new (url: string, subprotocols: string[]) => WebSocketLike;

/** Where the client runs; each part can be replaced, as tests and older runtimes do. */
export interface Environment {
  /** `undefined` if there is none: an installed package is then used. */
  readonly WebSocket: WebSocketConstructor | undefined;
  /** Imports a package that may not be installed. */
  readonly importPackage: (name: string) => Promise<Record<string, unknown>>;
  readonly fetch: typeof globalThis.fetch;
  /** Calls `callback` once after `delayMs`; returns a function that cancels the call. */
  readonly after: (delayMs: number, callback: () => void) => () => void;
  /** A monotonic clock in milliseconds. */
  readonly now: () => number;
  /** A number from 0 up to 1. */
  readonly random: () => number;
}

/** Browsers fire timers with longer delays than this (2³¹ − 1 ms) at once. */
const DELAY_MS_MAX = 2_147_483_647;

/** Returns the environment of this runtime with the parts in `given` replaced. */
export function environmentWith(given: Partial<Environment> = {}): Environment {
  return {
    WebSocket: globalThis.WebSocket as WebSocketConstructor | undefined,
    // Bundlers must not look for the package: it is needed in few runtimes.
    importPackage: (name) => import(/* webpackIgnore: true */ /* @vite-ignore */ name),
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
