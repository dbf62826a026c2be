// The npm package `linerate`: channels of a linerate server in browsers, Node.js and other
// runtimes.

export {
  Client,
  type ClientEvents,
  type ClientOptions,
  connect,
  type History,
  type HistoryOptions,
} from "./client.js";
export type { ConnectionState } from "./connection.js";
export type { Environment, WebSocketConstructor, WebSocketLike } from "./environment.js";
export {
  ConnectionLost,
  ProtocolError,
  ServerError,
  TimedOut,
  Unauthorized,
  Unsubscribed,
} from "./errors.js";
export type { Gap } from "./gap.js";
export type { Transport } from "./link.js";
export type { ClientInfo } from "./messages.js";
export type { Publication } from "./publication.js";
export type {
  StreamPosition,
  SubscribeOptions,
  SubscriptionEvents,
  SubscriptionState,
} from "./subscribing.js";
export type { Subscription } from "./subscription.js";
export type { TokenSource } from "./token.js";
