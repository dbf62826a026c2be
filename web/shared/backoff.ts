// How long to wait before the next attempt to reach the server.

const FIRST_MS = 500;
const LONGEST_MS = 15_000;

/**
 * Returns the delay before retry `attempt` (0 is the first): it doubles from half a second to 15 s,
 * and half of it is random, so that many pages do not reconnect together.
 */
export function retryDelayMs(attempt: number, random: () => number = Math.random): number {
  const ceiling = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(attempt, 16));
  return Math.round(ceiling * (0.5 + 0.5 * random()));
}
