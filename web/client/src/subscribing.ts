// The options and the events of a subscription.

import type { Gap } from "./gap.js";
import type { ClientInfo } from "./messages.js";
import type { Publication } from "./publication.js";
import type { TokenSource } from "./token.js";

/** A position in the stream of a channel: later publications have not been seen. */
export interface StreamPosition {
  readonly epoch: string;
  readonly offset: number;
}

export interface SubscribeOptions {
  /**
   * An expression over the payload's fields: only publications for which it is true are delivered.
   */
  filter?: string;
  /**
   * How long the server collects publications into a batch, in milliseconds; 0 sends at once.
   * Default: the channel's setting.
   */
  batchIntervalMs?: number;
  /**
   * `"latest"`, or a JSON pointer to a key: of the publications that wait, only the newest (of each
   * key) is delivered.
   */
  conflate?: string;
  /** True to recover what was published while the connection was lost. Default: true. */
  recover?: boolean;
  /** Recover from this position, as if the connection had been lost there. */
  since?: StreamPosition;
  /** The token for this channel, or a function that gets one. */
  token?: TokenSource<string>;
  /** Any data to send to the server. */
  data?: unknown;
  /** True to receive `join` and `leave` events. */
  joinLeave?: boolean;
  /**
   * How many publications may wait for each iterator before the oldest are dropped. Default:
   * 10,000.
   */
  bufferMax?: number;
}

/** `"subscribing"` until the server has confirmed, and again while there is no connection. */
export type SubscriptionState = "subscribing" | "subscribed" | "unsubscribed";

export interface SubscriptionEvents {
  /**
   * The server has confirmed. `recovered` is undefined if there was no position to recover from.
   */
  subscribed: { recovered: boolean | undefined; position: StreamPosition | undefined };
  publication: Publication;
  /** Publications that arrived together, never empty. */
  batch: readonly Publication[];
  gap: Gap;
  /** The subscription has ended permanently. */
  unsubscribed: { code: number; reason: string };
  join: ClientInfo;
  leave: ClientInfo;
  /** Something went wrong that is being retried. */
  error: Error;
}
