// A subscription: kept across connections, and recovered if the channel keeps its publications.

import { type Backoff, retryDelayMs } from "./backoff.js";
import type { Block } from "./blocks.js";
import * as codes from "./codes.js";
import type { Connection } from "./connection.js";
import { Emitter, type Listener } from "./emitter.js";
import type { Environment } from "./environment.js";
import {
  asError,
  ConnectionLost,
  ServerError,
  TimedOut,
  Unauthorized,
  Unsubscribed,
} from "./errors.js";
import { causeOf, type Gap, mayChangeEpoch } from "./gap.js";
import { Inbox } from "./inbox.js";
import type {
  ClientInfo,
  PublicationMessage,
  SubscribeRequest,
  SubscribeResult,
} from "./messages.js";
import { Publication } from "./publication.js";
import type {
  StreamPosition,
  SubscribeOptions,
  SubscriptionEvents,
  SubscriptionState,
} from "./subscribing.js";
import { refreshDelayMs, tokenFrom, type TokenSource } from "./token.js";

const BUFFER_MAX = 10_000;

/** What a subscription needs of its client. */
export interface SubscriptionHost {
  readonly connection: Connection;
  readonly environment: Environment;
  readonly backoff: Backoff;
  /** Reports the server's number for the channel. */
  numbered(subscription: Subscription, channelId: number): void;
  ended(subscription: Subscription): void;
}

export class Subscription implements AsyncIterable<Publication> {
  readonly channel: string;
  readonly #options: SubscribeOptions;
  readonly #host: SubscriptionHost;
  readonly #emitter = new Emitter<SubscriptionEvents>();
  readonly #inboxes = new Set<Inbox<Publication>>();
  readonly #batchInboxes = new Set<Inbox<readonly Publication[]>>();
  #state: SubscriptionState = "subscribing";
  /** `undefined` until the server has named it, and again while a new epoch has not been named. */
  #epoch: string | undefined;
  #offset = 0;
  /** Counts changes of the epoch, so that late answers about an earlier one are recognised. */
  #epochs = 0;
  #wasSubscribed = false;
  /** True if the server has made the subscription unasked. */
  #isServers = false;
  /** The gap to report with the next publication. */
  #gap: Gap | undefined;
  #end: Unsubscribed | undefined;
  /** Counts attempts to subscribe, so that late answers to an earlier one are recognised. */
  #attempt = 0;
  #retries = 0;
  #cancelTimer = () => {};

  /** @internal */
  constructor(channel: string, options: SubscribeOptions, host: SubscriptionHost) {
    this.channel = channel;
    this.#options = options;
    this.#host = host;
    this.#epoch = options.since?.epoch;
    this.#offset = options.since?.offset ?? 0;
  }

  get state(): SubscriptionState {
    return this.#state;
  }

  /**
   * The current position in the channel's stream; pass it as `since` to continue from here later.
   */
  get position(): StreamPosition | undefined {
    return this.#epoch === undefined ? undefined : { epoch: this.#epoch, offset: this.#offset };
  }

  /** Calls `listener` on each event `name`; returns a function that removes the listener. */
  on<Name extends keyof SubscriptionEvents>(
    name: Name,
    listener: Listener<SubscriptionEvents[Name]>,
  ): () => void {
    return this.#emitter.on(name, listener);
  }

  /** Ends the subscription; iterations over it end. */
  unsubscribe(): void {
    if (this.#state !== "unsubscribed") {
      const { channel } = this;
      const ignore = () => {};
      this.#host.connection.send("unsubscribe", { channel }, { resolve: ignore, reject: ignore });
      this.#finish(codes.UNSUBSCRIBE_CALLED, "unsubscribe called", undefined);
    }
  }

  /**
   * Iterates over publications that arrive from now on. It ends with `unsubscribe`, and rejects
   * with `Unsubscribed` if the server ends the subscription permanently.
   */
  [Symbol.asyncIterator](): AsyncIterableIterator<Publication> {
    return this.#openInbox(this.#inboxes, () => 1);
  }

  /** Like the iterator over publications, but over batches: publications that arrived together. */
  batches(): AsyncIterableIterator<readonly Publication[]> {
    return this.#openInbox(this.#batchInboxes, (batch) => batch.length);
  }

  /** @internal There is a connection. */
  handleConnected(): void {
    this.#retries = 0;
    if (!this.#isServers) {
      this.#subscribe();
    } else if (this.#state !== "subscribed") {
      const [code, reason] = [codes.SERVER_UNSUBSCRIBE, "no longer subscribed by the server"];
      this.#finish(code, reason, new Unsubscribed(code, reason));
    }
  }

  /** @internal The server has subscribed the client. */
  handleServerSubscribed(result: SubscribeResult): void {
    this.#isServers = true;
    this.#handleSubscribed(result);
  }

  /** True if the server has subscribed the client unasked. */
  get isServers(): boolean {
    return this.#isServers;
  }

  /** @internal The connection is lost. */
  handleDisconnected(): void {
    this.#attempt += 1;
    this.#cancelTimer();
    this.#state = "subscribing";
  }

  /** @internal A block of publications arrived. */
  handleBlock(block: Block): void {
    if (block.gap !== undefined) {
      const { missed, cause } = block.gap;
      this.#handleGap({ missed, cause: causeOf(cause) });
    }
    const publications = block.items.map(({ offset, source, extras, payload }) =>
      Publication.fromBytes(payload, { channel: source ?? this.channel, offset, ...extras }),
    );
    this.#handlePublications(publications);
  }

  /** @internal Publications arrived in control messages. */
  handleMessages(messages: PublicationMessage[]): void {
    this.#handlePublications(messages.map((one) => Publication.fromMessage(one, this.channel)));
  }

  /** @internal The server has ended the subscription. */
  handleUnsubscribe(code: number, reason: string): void {
    if (codes.subscribesAgain(code) && this.#isServers) {
      this.#host.connection.restart(codes.TRANSPORT_CLOSED, reason);
    } else if (codes.subscribesAgain(code)) {
      this.handleDisconnected();
      this.#subscribe();
    } else {
      this.#finish(code, reason, new Unsubscribed(code, reason));
    }
  }

  /** @internal A client joined or left. */
  handlePresence(name: "join" | "leave", info: ClientInfo): void {
    this.#emitter.emit(name, info);
  }

  /** @internal The client has been closed. */
  handleClosed(code: number, reason: string): void {
    const wanted = code === codes.DISCONNECT_CALLED;
    this.#finish(code, reason, wanted ? undefined : new Unsubscribed(code, reason));
  }

  #handlePublications(publications: Publication[]): void {
    const [first] = publications;
    if (first === undefined) {
      return;
    }
    this.#offset = publications.at(-1)?.offset ?? this.#offset;
    first.follow(this.#gap);
    this.#gap = undefined;
    this.#deliver(publications);
  }

  #handleGap(gap: Gap): void {
    this.#gap = this.#gap === undefined ? gap : sumOf(this.#gap, gap);
    if (mayChangeEpoch(gap.cause)) {
      this.#askForEpoch();
    }
    this.#emitter.emit("gap", gap);
  }

  /** Another epoch may have begun, and its name is needed to recover later. */
  #askForEpoch(): void {
    this.#epoch = undefined;
    this.#epochs += 1;
    const epochs = this.#epochs;
    const resolve = ({ epoch }: { epoch?: string }) => {
      if (epochs === this.#epochs) {
        this.#epoch = epoch;
      }
    };
    // Without the permission to ask there is no position until the next subscribe, and a connection
    // lost before that is a gap.
    const ignore = () => {};
    const { channel } = this;
    this.#host.connection.send("history", { channel, limit: 0 }, { resolve, reject: ignore });
  }

  #subscribe(): void {
    this.#attempt += 1;
    const attempt = this.#attempt;
    const { token } = this.#options;
    if (token === undefined) {
      this.#ask(undefined);
      return;
    }
    tokenFrom(token, this.channel).then(
      (fresh) => attempt === this.#attempt && this.#ask(fresh),
      (error: unknown) => attempt === this.#attempt && this.#handleError(asError(error)),
    );
  }

  #ask(token: string | undefined): void {
    const attempt = this.#attempt;
    this.#host.connection.send("subscribe", this.#request(token), {
      resolve: (result) => attempt === this.#attempt && this.#handleSubscribed(result),
      reject: (error) => attempt === this.#attempt && this.#handleError(error),
    });
  }

  #request(token: string | undefined): SubscribeRequest {
    const { filter, batchIntervalMs, conflate, data, joinLeave } = this.#options;
    const recovers = this.#options.recover !== false;
    return {
      channel: this.channel,
      ...(recovers && {
        recoverable: true,
        ...(this.position && { recover: true, ...this.position }),
      }),
      // Only blocks report gaps. Otherwise a gap must end the subscription.
      ...(this.#host.connection.transport !== "websocket" && { positioned: true }),
      ...(token !== undefined && { token }),
      ...(filter !== undefined && { filter }),
      ...(batchIntervalMs !== undefined && { batch_interval_ms: batchIntervalMs }),
      ...(conflate !== undefined && { conflate }),
      ...(data !== undefined && { data }),
      ...(joinLeave === true && { join_leave: true }),
    };
  }

  #handleSubscribed(result: SubscribeResult): void {
    const before = this.position;
    const recovered = result.was_recovering === true ? result.recovered === true : undefined;
    const { epoch, offset = 0 } = result;
    const now = epoch === undefined ? undefined : { epoch, offset };
    this.#state = "subscribed";
    this.#retries = 0;
    this.#host.numbered(this, result.id ?? 0);
    this.#emitter.emit("subscribed", { recovered, position: now });
    this.#epochs += 1;
    this.#epoch = epoch;
    if (recovered !== true) {
      this.#offset = offset;
      if (this.#wasSubscribed || this.#options.since !== undefined) {
        this.#handleGap({ missed: distance(before, now), cause: "recovery" });
      }
    }
    this.#wasSubscribed = true;
    this.handleMessages(result.publications ?? []);
    this.#scheduleRefresh(result.expires, result.ttl);
  }

  #handleError(error: Error): void {
    if (error instanceof ConnectionLost) {
      return; // The next connection subscribes again.
    }
    if (error instanceof TimedOut) {
      // It is unknown whether the server has subscribed us: a new connection resolves this.
      this.#host.connection.restart(codes.TRANSPORT_CLOSED, error.message);
      return;
    }
    if (!this.#isRetried(error)) {
      const code = error instanceof ServerError ? error.code : codes.UNAUTHORIZED;
      this.#finish(code, error.message, new Unsubscribed(code, error.message));
      return;
    }
    this.#emitter.emit("error", error);
    this.#retryLater(() => this.#subscribe());
  }

  /** Returns whether to retry the command; drops a position that cannot be recovered. */
  #isRetried(error: Error): boolean {
    if (!(error instanceof ServerError)) {
      return !(error instanceof Unauthorized);
    }
    if (codes.isUnrecoverable(error.code) && this.#epoch !== undefined) {
      this.#epoch = undefined;
      return true;
    }
    const isRenewable = typeof this.#options.token === "function";
    return error.temporary || (isRenewable && codes.wantsNewerToken(error.code));
  }

  #scheduleRefresh(expires: boolean | undefined, ttlSeconds: number | undefined): void {
    const { token } = this.#options;
    this.#cancelTimer();
    if (expires === true && typeof token === "function") {
      const delayMs = refreshDelayMs(ttlSeconds ?? 0);
      this.#cancelTimer = this.#host.environment.after(delayMs, () => this.#refresh(token));
    }
  }

  #refresh(source: TokenSource<string>): void {
    const attempt = this.#attempt;
    const { channel } = this;
    const reject = (error: Error) => {
      if (attempt !== this.#attempt || error instanceof ConnectionLost) {
        return;
      }
      this.#emitter.emit("error", error);
      const isFinal = error instanceof Unauthorized;
      // A refused token may be replaced until the server ends the subscription.
      if (!isFinal) {
        this.#retryLater(() => this.#refresh(source));
      }
    };
    tokenFrom(source, channel).then(
      (token) => {
        if (attempt === this.#attempt) {
          this.#host.connection.send(
            "sub_refresh",
            { channel, token },
            {
              resolve: ({ expires, ttl }) => {
                if (attempt === this.#attempt) {
                  this.#retries = 0;
                  this.#scheduleRefresh(expires, ttl);
                }
              },
              reject,
            },
          );
        }
      },
      (error: unknown) => reject(asError(error)),
    );
  }

  #retryLater(retry: () => void): void {
    const { backoff, environment } = this.#host;
    const delayMs = retryDelayMs(backoff, this.#retries, environment.random);
    this.#retries += 1;
    this.#cancelTimer();
    this.#cancelTimer = environment.after(delayMs, retry);
  }

  #deliver(batch: readonly Publication[]): void {
    let dropped = 0;
    for (const inbox of this.#inboxes) {
      for (const publication of batch) {
        dropped += inbox.push(publication);
      }
    }
    for (const inbox of this.#batchInboxes) {
      dropped += inbox.push(batch);
    }
    for (const publication of batch) {
      this.#emitter.emit("publication", publication);
    }
    this.#emitter.emit("batch", batch);
    if (dropped > 0) {
      this.#emitter.emit("gap", { missed: dropped, cause: "reader" });
    }
  }

  #openInbox<Item>(inboxes: Set<Inbox<Item>>, weigh: (item: Item) => number): Inbox<Item> {
    const inbox = new Inbox<Item>(this.#options.bufferMax ?? BUFFER_MAX, weigh, (ended) =>
      inboxes.delete(ended),
    );
    if (this.#state === "unsubscribed") {
      inbox.end(this.#end);
    } else {
      inboxes.add(inbox);
    }
    return inbox;
  }

  #finish(code: number, reason: string, error: Unsubscribed | undefined): void {
    if (this.#state === "unsubscribed") {
      return;
    }
    this.handleDisconnected();
    this.#state = "unsubscribed";
    this.#end = error;
    for (const inbox of [...this.#inboxes, ...this.#batchInboxes]) {
      inbox.end(error);
    }
    this.#inboxes.clear();
    this.#batchInboxes.clear();
    this.#host.ended(this);
    this.#emitter.emit("unsubscribed", { code, reason });
  }
}

function sumOf(first: Gap, second: Gap): Gap {
  const { missed } = first;
  const both =
    missed === undefined || second.missed === undefined ? undefined : missed + second.missed;
  return { missed: both, cause: second.cause };
}

/** Returns how many publications lie between two positions, if they are in the same stream. */
function distance(
  before: StreamPosition | undefined,
  now: StreamPosition | undefined,
): number | undefined {
  const comparable = before !== undefined && before.epoch === now?.epoch;
  return comparable && now.offset >= before.offset ? now.offset - before.offset : undefined;
}
