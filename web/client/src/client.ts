// The client: one connection and its subscriptions.

import type { Backoff } from "./backoff.js";
import { fromBase64, toBase64 } from "./base64.js";
import { readBlocks } from "./blocks.js";
import * as codes from "./codes.js";
import { Connection, type ConnectionState } from "./connection.js";
import { Emitter, type Listener } from "./emitter.js";
import { endpointsOf } from "./endpoints.js";
import { type Environment, environmentWith } from "./environment.js";
import { ConnectionLost, TimedOut } from "./errors.js";
import type { Transport } from "./link.js";
import type {
  ClientInfo,
  Commands,
  ConnectResult,
  PresenceStats,
  Push,
  RecoverRequest,
  SubscribeResult,
} from "./messages.js";
import { Publication } from "./publication.js";
import type { StreamPosition, SubscribeOptions } from "./subscribing.js";
import { Subscription } from "./subscription.js";
import type { TokenSource } from "./token.js";

export interface ClientOptions {
  /** The token, or a function that gets one: called before every connection and every refresh. */
  token?: TokenSource;
  /** The name of this kind of client in the server's lists. Default: `"js"`. */
  name?: string;
  /** Any data to send to the server. */
  data?: unknown;
  /** The transports to try, in this order. Default: WebSocket, then HTTP streaming. */
  transports?: readonly Transport[];
  /** The longest wait before the first attempt to reconnect; it doubles each time. Default: 500. */
  reconnectFirstMs?: number;
  /** The longest wait between attempts. Default: 20,000. */
  reconnectLongestMs?: number;
  /** How long opening a connection may take. Default: 10,000. */
  connectTimeoutMs?: number;
  /** How long a command may wait for its answer. Default: 5,000. */
  requestTimeoutMs?: number;
  /** How much later than announced a ping may arrive. Default: 10,000. */
  pingGraceMs?: number;
  /** Parts of the runtime to replace, such as its `WebSocket`. */
  environment?: Partial<Environment>;
}

export interface ClientEvents {
  /** A connection is being opened, or will be in `retryInMs`; the code is the reason. */
  connecting: { code: number; reason: string; retryInMs: number };
  connected: { client: string; transport: Transport; version: string; data: unknown };
  /** The connection has ended permanently: closed by `close`, or refused by the server. */
  disconnected: { code: number; reason: string };
  /** The server has subscribed the client to a channel. */
  subscription: Subscription;
  /** Something went wrong that is being retried. */
  error: Error;
}

export interface HistoryOptions {
  /** The maximum number of publications; 0 for only the position. Default: the server's limit. */
  limit?: number;
  /** Only publications after this position. */
  since?: StreamPosition;
  /** True for newest first. */
  reverse?: boolean;
}

export interface History {
  readonly publications: readonly Publication[];
  /** The newest position of the channel's stream. */
  readonly position: StreamPosition;
}

/**
 * Connects to the server at `url` and keeps the connection: `https://example.org`, the same with a
 * prefix before `/connection/…`, or the WebSocket endpoint itself. In a page, `url` defaults to the
 * page's server.
 */
export function connect(url = "", options: ClientOptions = {}): Client {
  const client = new Client(url, options);
  client.connect();
  return client;
}

export class Client {
  readonly #emitter = new Emitter<ClientEvents>();
  readonly #subscriptions = new Map<string, Subscription>();
  readonly #numbered = new Map<number, Subscription>();
  readonly #environment: Environment;
  readonly #backoff: Backoff;
  readonly #requestTimeoutMs: number;
  readonly #connection: Connection;
  #id: string | undefined;
  #transport: Transport | undefined;

  /** Creates a client that is not connected until `connect` is called. */
  constructor(url: string, options: ClientOptions = {}) {
    this.#environment = environmentWith(options.environment);
    this.#backoff = {
      firstMs: options.reconnectFirstMs ?? 500,
      longestMs: options.reconnectLongestMs ?? 20_000,
    };
    this.#requestTimeoutMs = options.requestTimeoutMs ?? 5_000;
    this.#connection = new Connection(
      endpointsOf(url, globalThis.location?.origin),
      {
        transports: options.transports ?? ["websocket", "http_stream"],
        token: options.token,
        name: options.name ?? "js",
        data: options.data,
        backoff: this.#backoff,
        connectTimeoutMs: options.connectTimeoutMs ?? 10_000,
        requestTimeoutMs: this.#requestTimeoutMs,
        pingGraceMs: options.pingGraceMs ?? 10_000,
      },
      this.#environment,
      {
        connecting: (code, reason, retryInMs) => this.#handleCut(code, reason, retryInMs),
        connected: (result, transport) => this.#handleConnected(result, transport),
        recoveries: () => this.#recoveries(),
        disconnected: (code, reason) => this.#handleEnd(code, reason),
        push: (push) => this.#handlePush(push),
        publications: (channel, messages) =>
          this.#subscriptions.get(channel)?.handleMessages(messages),
        blocks: (bytes) => this.#handleBlocks(bytes),
        error: (error) => this.#emitter.emit("error", error),
      },
    );
  }

  get state(): ConnectionState {
    return this.#connection.state;
  }

  /** The server's id for this connection, while there is one. */
  get id(): string | undefined {
    return this.#id;
  }

  /** The transport of this connection, while there is one. */
  get transport(): Transport | undefined {
    return this.#transport;
  }

  /** The subscriptions that have not ended, by channel. */
  get subscriptions(): ReadonlyMap<string, Subscription> {
    return this.#subscriptions;
  }

  /** Calls `listener` on each event `name`; returns a function that removes the listener. */
  on<Name extends keyof ClientEvents>(
    name: Name,
    listener: Listener<ClientEvents[Name]>,
  ): () => void {
    return this.#emitter.on(name, listener);
  }

  /** Connects again after `close`, or skips the rest of the wait before the next attempt. */
  connect(): void {
    this.#connection.start();
  }

  /** Ends the connection and all subscriptions. */
  close(): void {
    this.#connection.stop(codes.DISCONNECT_CALLED, "close called");
    this.#forEach((subscription) =>
      subscription.handleClosed(codes.DISCONNECT_CALLED, "close called"),
    );
  }

  /** Subscribes to `channel`, now or once connected; throws if there is already a subscription. */
  subscribe(channel: string, options: SubscribeOptions = {}): Subscription {
    if (this.#subscriptions.has(channel)) {
      throw new Error(`already subscribed to ${channel}`);
    }
    const subscription = this.#add(channel, options);
    if (this.state === "connected") {
      subscription.handleConnected();
    }
    return subscription;
  }

  /**
   * Publishes `data`, bytes as they are, anything else as JSON; resolves when the broker has
   * accepted it.
   */
  async publish(channel: string, data: unknown): Promise<void> {
    const payload = data instanceof Uint8Array ? { b64data: toBase64(data) } : { data };
    await this.#request("publish", { channel, ...payload });
  }

  /**
   * Calls a method of the application with `data`, which must be representable as JSON. Resolves
   * with what the method returns: a `Uint8Array` if that is not JSON.
   */
  async rpc(method: string, data: unknown = null): Promise<unknown> {
    const result = await this.#request("rpc", { method, data });
    return result.b64data === undefined ? result.data : fromBase64(result.b64data);
  }

  /**
   * Sends `data` to the application, which does not answer; resolves once it is on the way. It is
   * lost if the connection ends before it arrives.
   */
  async send(data: unknown): Promise<void> {
    await this.#untilConnected();
    this.#connection.tell({ send: { data } });
  }

  /** Returns the clients that are subscribed to `channel`. */
  async presence(channel: string): Promise<ClientInfo[]> {
    const { presence } = await this.#request("presence", { channel });
    return Object.values(presence ?? {});
  }

  /** Returns how many clients and users are subscribed to `channel`. */
  async presenceStats(channel: string): Promise<{ clients: number; users: number }> {
    const stats: Partial<PresenceStats> = await this.#request("presence_stats", { channel });
    return { clients: stats.num_clients ?? 0, users: stats.num_users ?? 0 };
  }

  /** Returns the publications that `channel` keeps. */
  async history(channel: string, options: HistoryOptions = {}): Promise<History> {
    const { limit, since, reverse } = options;
    const result = await this.#request("history", {
      channel,
      // The protocol reads an absent limit as 0: only the position.
      limit: limit ?? -1,
      ...(since !== undefined && { since: { epoch: since.epoch, offset: since.offset } }),
      ...(reverse === true && { reverse }),
    });
    return {
      publications: (result.publications ?? []).map((one) => Publication.fromMessage(one, channel)),
      position: { epoch: result.epoch ?? "", offset: result.offset ?? 0 },
    };
  }

  #add(channel: string, options: SubscribeOptions): Subscription {
    const subscription = new Subscription(channel, options, {
      connection: this.#connection,
      environment: this.#environment,
      backoff: this.#backoff,
      numbered: (one, channelId) => void this.#numbered.set(channelId, one),
      ended: (one) => this.#forget(one),
    });
    this.#subscriptions.set(channel, subscription);
    return subscription;
  }

  async #request<Method extends keyof Commands>(
    method: Method,
    request: Commands[Method][0],
  ): Promise<Commands[Method][1]> {
    await this.#untilConnected();
    return new Promise((resolve, reject) => {
      this.#connection.send(method, request, { resolve, reject });
    });
  }

  /** Resolves once connected; rejects if that takes too long. */
  #untilConnected(): Promise<void> {
    if (this.state === "connected") {
      return Promise.resolve();
    }
    if (this.state === "disconnected") {
      return Promise.reject(new ConnectionLost("client is disconnected"));
    }
    return new Promise((resolve, reject) => {
      const settle = (settled: () => void) => () => {
        ends.forEach((end) => end());
        settled();
      };
      const ends = [
        this.on("connected", settle(resolve)),
        this.on(
          "disconnected",
          settle(() => reject(new ConnectionLost("client is disconnected"))),
        ),
        this.#environment.after(
          this.#requestTimeoutMs,
          settle(() => reject(new TimedOut(`no connection within ${this.#requestTimeoutMs} ms`))),
        ),
      ];
    });
  }

  #handleConnected(result: ConnectResult, transport: Transport): void {
    this.#id = result.client;
    this.#transport = transport;
    const { client, version = "", data, subs = {} } = result;
    this.#emitter.emit("connected", { client, transport, version, data });
    for (const [channel, subscribed] of Object.entries(subs)) {
      this.#handleServerSubscribed(channel, subscribed);
    }
    this.#forEach((subscription) => subscription.handleConnected());
  }

  #handleServerSubscribed(channel: string, result: SubscribeResult): void {
    const known = this.#subscriptions.get(channel);
    const subscription = known ?? this.#add(channel, {});
    if (known === undefined) {
      this.#emitter.emit("subscription", subscription);
    }
    subscription.handleServerSubscribed(result);
  }

  #recoveries(): Record<string, RecoverRequest> {
    const entries = [...this.#subscriptions.values()].flatMap((one) =>
      one.isServers && one.position !== undefined
        ? [[one.channel, { recover: true, ...one.position }] as const]
        : [],
    );
    return Object.fromEntries(entries);
  }

  #handleCut(code: number, reason: string, retryInMs: number): void {
    this.#forgetConnection();
    this.#forEach((subscription) => subscription.handleDisconnected());
    this.#emitter.emit("connecting", { code, reason, retryInMs });
  }

  #handleEnd(code: number, reason: string): void {
    this.#forgetConnection();
    this.#forEach((subscription) => subscription.handleClosed(code, reason));
    this.#emitter.emit("disconnected", { code, reason });
  }

  #handleBlocks(bytes: Uint8Array): void {
    for (const block of readBlocks(bytes)) {
      // Drop what the server sent before it received an unsubscribe.
      this.#numbered.get(block.channelId)?.handleBlock(block);
    }
  }

  #handlePush(push: Push): void {
    const { channel, join, leave, subscribe, unsubscribe } = push;
    if (channel !== undefined && subscribe !== undefined) {
      this.#handleServerSubscribed(channel, subscribe);
      return;
    }
    const subscription = this.#subscriptions.get(channel ?? "");
    if (subscription === undefined) {
      return;
    }
    if (unsubscribe !== undefined) {
      subscription.handleUnsubscribe(unsubscribe.code, unsubscribe.reason);
    } else if (join !== undefined) {
      subscription.handlePresence("join", join.info);
    } else if (leave !== undefined) {
      subscription.handlePresence("leave", leave.info);
    }
  }

  #forget(subscription: Subscription): void {
    this.#subscriptions.delete(subscription.channel);
    for (const [channelId, one] of this.#numbered) {
      if (one === subscription) {
        this.#numbered.delete(channelId);
      }
    }
  }

  #forgetConnection(): void {
    this.#id = undefined;
    this.#transport = undefined;
    this.#numbered.clear();
  }

  #forEach(action: (subscription: Subscription) => void): void {
    [...this.#subscriptions.values()].forEach(action);
  }
}
