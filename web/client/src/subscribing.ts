// What one may ask of a subscription, and what it tells.

import type { Gap } from "./gap.js";
import type { ClientInfo } from "./messages.js";
import type { Publication } from "./publication.js";
import type { TokenSource } from "./token.js";

/** A place in the stream of a channel: what comes after it hasn't been seen. */
export interface StreamPosition {
  readonly epoch: string;
  readonly offset: number;
}

export interface SubscribeOptions {
  /** An expression over the payload's fields: only publications for which it holds are delivered. */
  filter?: string;
  /** How long the server collects publications into a batch; 0 sends at once. Default: the channel's. */
  batchIntervalMs?: number;
  /** `"latest"`, or a JSON pointer: of those that wait, only the newest (of each key) is delivered. */
  conflate?: string;
  /** Whether to recover what was published while the connection was cut. Default: true. */
  recover?: boolean;
  /** Recover from here, as if the subscription had been cut then. */
  since?: StreamPosition;
  /** The token for this channel, or what gets one. */
  token?: TokenSource<string>;
  /** Anything that the server shall know. */
  data?: unknown;
  /** Whether to be told who comes and goes. */
  joinLeave?: boolean;
  /** How many publications may wait for each iterator; then the oldest give way. Default: 10,000. */
  bufferMax?: number;
}

/** `"subscribing"` until the server has agreed, and again while there is no connection. */
export type SubscriptionState = "subscribing" | "subscribed" | "unsubscribed";

export interface SubscriptionEvents {
  /** The server has agreed. `recovered` is undefined if there was nothing to recover from. */
  subscribed: { recovered: boolean | undefined; position: StreamPosition | undefined };
  publication: Publication;
  /** What arrived at once, never empty. */
  batch: readonly Publication[];
  gap: Gap;
  /** The subscription has ended for good. */
  unsubscribed: { code: number; reason: string };
  join: ClientInfo;
  leave: ClientInfo;
  /** Something went wrong that is being retried. */
  error: Error;
}
