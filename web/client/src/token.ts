// Tokens: asked for anew before every connection, and before they expire.

import { Unauthorized } from "./errors.js";

/** A token, or how to get one. It is asked for before each connection and each refresh. */
export type TokenSource<Context = void> = string | ((context: Context) => string | Promise<string>);

/** The share of a token's life after which a new one is asked for. */
const REFRESH_SHARE = 0.9;

/** Returns a token; throws `Unauthorized` if the source gives none. */
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

/** Returns when to refresh a token that lives `ttlSeconds` more, in milliseconds from now. */
export function refreshDelayMs(ttlSeconds: number): number {
  return Math.max(0, ttlSeconds * 1_000 * REFRESH_SHARE);
}
