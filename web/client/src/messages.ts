// The control messages as JSON: commands, replies and pushes, with Centrifuge's names.

/** The client that published or is present. */
export interface ClientInfo {
  readonly user: string;
  readonly client: string;
  readonly conn_info?: unknown;
  readonly chan_info?: unknown;
}

export interface ConnectRequest {
  token?: string;
  data?: unknown;
  name?: string;
  version?: string;
  /** The positions from which to recover the subscriptions that the server has made. */
  subs?: Record<string, RecoverRequest>;
}

export interface RecoverRequest {
  recover: true;
  epoch: string;
  offset: number;
}

export interface ConnectResult {
  client: string;
  version?: string;
  /** True if the connection ends unless its token is refreshed within `ttl` seconds. */
  expires?: boolean;
  ttl?: number;
  /** Seconds between pings of the server; 0 or absent if it sends none. */
  ping?: number;
  /** True if pings must be answered. */
  pong?: boolean;
  /** The session and node that HTTP streaming needs to send commands. */
  session?: string;
  node?: string;
  data?: unknown;
  /** The channels that the server has subscribed the client to. */
  subs?: Record<string, SubscribeResult>;
}

export interface SubscribeRequest {
  channel: string;
  token?: string;
  /** True if a later connection may recover. */
  recoverable?: boolean;
  /** True if a gap should end the subscription. */
  positioned?: boolean;
  recover?: boolean;
  epoch?: string;
  offset?: number;
  filter?: string;
  batch_interval_ms?: number;
  conflate?: string;
  data?: unknown;
  join_leave?: boolean;
}

export interface PublicationMessage {
  data?: unknown;
  /** The payload in base64, if it is not JSON. */
  b64data?: string;
  offset?: number;
  info?: ClientInfo;
  tags?: Record<string, string>;
  /** The channel that it was published in, if a pattern is subscribed. */
  channel?: string;
}

export interface SubscribeResult {
  /** The number that stands for the channel in blocks; absent if it is 0. */
  id?: number;
  expires?: boolean;
  ttl?: number;
  recoverable?: boolean;
  positioned?: boolean;
  epoch?: string;
  offset?: number;
  was_recovering?: boolean;
  recovered?: boolean;
  publications?: PublicationMessage[];
  data?: unknown;
}

export interface RefreshResult {
  expires?: boolean;
  ttl?: number;
}

export interface Presence {
  /** The clients that are present, by id. */
  readonly presence: Readonly<Record<string, ClientInfo>>;
}

export interface PresenceStats {
  readonly num_clients: number;
  readonly num_users: number;
}

export interface HistoryResult {
  publications?: PublicationMessage[];
  epoch?: string;
  offset?: number;
}

export interface RpcResult {
  data?: unknown;
  /** The value in base64, if it is not JSON. */
  b64data?: string;
}

export interface ErrorMessage {
  code: number;
  message: string;
  temporary?: boolean;
}

/** A message about a channel or the connection that does not answer a command. */
export interface Push {
  channel?: string;
  pub?: PublicationMessage;
  join?: { info: ClientInfo };
  leave?: { info: ClientInfo };
  subscribe?: SubscribeResult;
  unsubscribe?: { code: number; reason: string };
  disconnect?: { code: number; reason: string };
}

/** Each command's name, with the types of its request and its result. */
export interface Commands {
  connect: [ConnectRequest, ConnectResult];
  subscribe: [SubscribeRequest, SubscribeResult];
  unsubscribe: [{ channel: string }, object];
  publish: [{ channel: string; data: unknown } | { channel: string; b64data: string }, object];
  presence: [{ channel: string }, Presence];
  presence_stats: [{ channel: string }, PresenceStats];
  history: [
    {
      channel: string;
      limit?: number;
      since?: { offset: number; epoch: string };
      reverse?: boolean;
    },
    HistoryResult,
  ];
  rpc: [{ method: string; data: unknown }, RpcResult];
  refresh: [{ token: string }, RefreshResult];
  sub_refresh: [{ channel: string; token: string }, RefreshResult];
}

/** A message of the server. Without `id` and `push` it is a ping. */
export type Reply = { id?: number; error?: ErrorMessage; push?: Push } & {
  [Name in keyof Commands]?: Commands[Name][1];
};
