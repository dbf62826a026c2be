// Tokens: requested before every connection, and again before they expire.

import { Unauthorized } from "./errors.js";

/** A token, or a function that gets one, called before each connection and each refresh. */
export type TokenSource<Context = void> = string | ((context: Context) => string | Promise<string>);

/** The share of a token's lifetime after which a new one is requested. */
const REFRESH_SHARE = 0.9;

/** Returns a token; throws `Unauthorized` if the source does not return one. */
export async function tokenFrom<Context>(
  source: TokenSource<Context>,
  context: Context,
): Promise<string> {
  const token = typeof source === "string" ? source : await source(context);
  if (token === "") {
    throw new Unauthorized("the token callback returned no token");
  }
  return token;
}

/** Returns when to refresh a token that expires in `ttlSeconds`, in milliseconds from now. */
export function refreshDelayMs(ttlSeconds: number): number {
  return Math.max(0, ttlSeconds * 1_000 * REFRESH_SHARE);
}
