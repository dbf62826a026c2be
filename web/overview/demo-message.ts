// The messages that the demo publishes, and how it reads those that arrive.

/** Values of `key`, to demonstrate conflation by key. */
const KEYS = ["a", "b", "c", "d", "e"];

/** The payload of the demo's publications. */
export interface DemoMessage {
  n: number;
  key: string;
  /** The page that published it: only its own clock is comparable. */
  page: string;
  sent_ms: number;
  text?: string;
}

/** Makes the `n`th message of `page`. */
export function demoMessage(n: number, page: string, sentMs: number, text?: string): DemoMessage {
  const key = KEYS[n % KEYS.length] ?? "";
  // Browsers' clocks have steps of a tenth of a millisecond or more.
  const sent_ms = Math.round(10 * sentMs) / 10;
  return { n, key, page, sent_ms, ...(text !== undefined && { text }) };
}

/** Returns the latency of a payload if it is a message of `page`. */
export function latencyOf(payload: unknown, page: string, nowMs: number): number | undefined {
  const message = payload as Partial<DemoMessage> | null;
  const isOurs = typeof message === "object" && message?.page === page;
  return isOurs && typeof message.sent_ms === "number" ? nowMs - message.sent_ms : undefined;
}

/** Returns a one-line description of a payload; `text` is the payload as it arrived. */
export function describe(payload: unknown, text: string): string {
  const message = payload as Partial<DemoMessage> | null;
  if (typeof message !== "object" || message === null || typeof message.n !== "number") {
    return text;
  }
  const words = message.text === undefined ? "" : ` ${message.text}`;
  return `#${message.n} ${message.key ?? ""}${words}`;
}
