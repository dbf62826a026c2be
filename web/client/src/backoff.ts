// How long to wait before the next attempt to reach the server.

/** Doublings after which a delay has reached any sensible maximum. */
const DOUBLINGS_MAX = 16;

export interface Backoff {
  /** The upper bound of the first delay, in milliseconds. */
  firstMs: number;
  /** The upper bound of all delays, in milliseconds. */
  longestMs: number;
}

/**
 * Returns the delay before retry `attempt` (0 is the first): a random part of a ceiling that
 * doubles each time, so that clients that lost their connections together do not reconnect
 * together.
 */
export function retryDelayMs(backoff: Backoff, attempt: number, random: () => number): number {
  const doubled = backoff.firstMs * 2 ** Math.min(attempt, DOUBLINGS_MAX);
  return Math.round(Math.min(backoff.longestMs, doubled) * random());
}
