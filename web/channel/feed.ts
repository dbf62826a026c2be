// The subscriptions of the page: one without options, which receives what is published, and one as
// the user wishes, on its own connection.

import {
  Client,
  type ClientInfo,
  type Publication,
  type Subscription,
  Unsubscribed,
} from "../client/src/linerate.js";
import type { Credentials } from "./credentials.js";
import type { Wishes } from "./snippets.js";

export interface FeedEvents {
  /** The state of the connection and the subscription, in words. */
  state(kind: "connecting" | "live" | "refused", text: string): void;
  /** The server refuses the connection. */
  disconnected(reason: string): void;
  /** The server refuses the subscription without options, or that with the user's. */
  refused(which: "published" | "received", error: Error): void;
  subscribed(which: "published" | "received"): void;
  batch(which: "published" | "received", batch: readonly Publication[]): void;
  missed(count: number | undefined): void;
  join(info: ClientInfo): void;
  leave(info: ClientInfo): void;
}

export class Feed {
  readonly client: Client;
  readonly #channel: string;
  readonly #credentials: Credentials;
  readonly #events: FeedEvents;
  #second: Client | undefined;
  #wished: Subscription | undefined;

  constructor(channel: string, credentials: Credentials, events: FeedEvents) {
    this.#channel = channel;
    this.#credentials = credentials;
    this.#events = events;
    this.client = this.#connect();
    this.client.on("connecting", ({ reason, retryInMs }) => {
      events.state("connecting", retryInMs === 0 ? "connecting …" : `${reason}, reconnecting …`);
    });
    this.client.on("disconnected", ({ code, reason }) => {
      events.state("refused", `disconnected: ${reason} (${code})`);
      events.disconnected(`${reason} (${code})`);
    });
    const all = this.#subscribe(this.client, "published", {});
    all.on("subscribed", () => events.state("live", "live"));
    all.on("gap", ({ missed }) => events.missed(missed));
    all.on("join", (info) => events.join(info));
    all.on("leave", (info) => events.leave(info));
    this.client.connect();
  }

  /** Receives the channel as the user wishes, too; without wishes, only what is published. */
  wish(wishes: Wishes): void {
    this.#wished?.unsubscribe();
    this.#wished = undefined;
    if (Object.keys(wishes).length === 0) {
      this.#second?.close();
      this.#second = undefined;
      return;
    }
    this.#second ??= this.#connect();
    this.#second.connect();
    this.#wished = this.#subscribe(this.#second, "received", wishes);
  }

  /** Returns whether a client is one of this page. */
  isOwn(client: string): boolean {
    return client === this.client.id || client === this.#second?.id;
  }

  #connect(): Client {
    return new Client("", { name: "channel page", ...this.#credentials.clientOptions() });
  }

  #subscribe(client: Client, which: "published" | "received", wishes: Wishes): Subscription {
    const subscription = client.subscribe(this.#channel, {
      ...wishes,
      ...this.#credentials.subscribeOptions(),
      joinLeave: which === "published",
      // What was published while the connection was lost would distort the rates.
      recover: false,
    });
    subscription.on("batch", (batch) => this.#events.batch(which, batch));
    subscription.on("subscribed", () => this.#events.subscribed(which));
    subscription.on("error", (error) => this.#events.refused(which, error));
    subscription.on("unsubscribed", ({ code, reason }) => {
      if (code !== 0) {
        this.#events.refused(which, new Unsubscribed(code, reason));
      }
    });
    return subscription;
  }
}
