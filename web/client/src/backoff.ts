// How long to wait before the next attempt to reach the server.

/** Doublings after which a delay has reached any sensible longest one. */
const DOUBLINGS_MAX = 16;

export interface Backoff {
  /** The longest first delay, in milliseconds. */
  firstMs: number;
  /** What no delay exceeds, in milliseconds. */
  longestMs: number;
}

/**
 * Returns the delay before retry `attempt` (0 is the first): a random part of a ceiling that doubles
 * each time, so that clients that were cut at once don't return at once.
 */
export function retryDelayMs(backoff: Backoff, attempt: number, random: () => number): number {
  const doubled = backoff.firstMs * 2 ** Math.min(attempt, DOUBLINGS_MAX);
  return Math.round(Math.min(backoff.longestMs, doubled) * random());
}
