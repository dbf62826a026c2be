// The demo's publisher: a connection that publishes at the chosen rate, and what the user types.

import { Client } from "../client/src/linerate.js";
import { grouped } from "../shared/format.js";
import { element, setFigure, setText } from "../shared/page.js";
import { demoMessage } from "./demo-message.js";
import { askForToken, savedToken } from "../shared/token.js";

/** How often due automatic publications are sent. */
const TICK_MS = 20;
/** The number of unanswered publications at which automatic publishing pauses. */
const PENDING_MAX = 1_000;
/** The maximum number of overdue publications that are made up for after a pause. */
const DUE_MAX = 100;

export class DemoPublisher {
  readonly #page: string;
  readonly #client: Client;
  readonly #state = element("publisher-state");
  readonly #trouble = element("demo-trouble");
  #channel = "";
  #perSecond = 0;
  #due = 0;
  #lastMs = performance.now();
  #n = 0;
  #pending = 0;
  #published = 0;

  /** `page` names this page in what it publishes. */
  constructor(page: string) {
    this.#page = page;
    const token = savedToken();
    this.#client = new Client("", { name: "demo", ...(token !== undefined && { token }) });
    this.#client.on("connecting", ({ reason, retryInMs }) => {
      setText(this.#state, retryInMs === 0 ? "connecting …" : `${reason}, reconnecting …`);
      if (retryInMs > 0) {
        void this.#explain();
      }
    });
    this.#client.on("connected", () => {
      setText(this.#trouble, "");
      this.#show();
    });
    this.#client.on("disconnected", ({ code, reason }) => {
      setText(this.#state, "disconnected");
      askForToken(`${reason} (${code})`);
    });
    this.#client.connect();
    setInterval(() => this.#tick(), TICK_MS);
  }

  set channel(channel: string) {
    this.#channel = channel;
    setText(this.#trouble, "");
  }

  set perSecond(perSecond: number) {
    this.#perSecond = perSecond;
    this.#due = 0;
  }

  /** Publishes what the user typed. */
  async publish(text?: string): Promise<void> {
    this.#n += 1;
    this.#pending += 1;
    try {
      const message = demoMessage(this.#n, this.#page, performance.now(), text);
      await this.#client.publish(this.#channel, message);
      this.#published += 1;
      setText(this.#trouble, "");
      this.#show();
    } catch (error) {
      if (this.#client.state === "connected" || text !== undefined) {
        setText(this.#trouble, `Cannot publish to ${this.#channel}: ${String(error)}`);
      }
    } finally {
      this.#pending -= 1;
    }
  }

  /**
   * Shows the reason if the server refuses connections from its own pages: browsers do not reveal
   * the status of a failed handshake.
   */
  async #explain(): Promise<void> {
    const request = { method: "POST", body: "" };
    const answer = await fetch("/connection/http_stream", request).catch(() => undefined);
    await answer?.body?.cancel();
    if (answer?.status === 403) {
      setText(
        this.#trouble,
        `The origin ${location.origin} is not in this server's server.origins, so its pages cannot connect.`,
      );
    }
  }

  #tick(): void {
    const nowMs = performance.now();
    const elapsedMs = nowMs - this.#lastMs;
    this.#lastMs = nowMs;
    if (this.#client.state !== "connected") {
      return;
    }
    this.#due = Math.min(DUE_MAX, this.#due + (this.#perSecond * elapsedMs) / 1_000);
    for (; this.#due >= 1 && this.#pending < PENDING_MAX; this.#due -= 1) {
      void this.publish();
    }
  }

  #show(): void {
    const transport = this.#client.transport === "http_stream" ? " over HTTP streaming" : "";
    setFigure(this.#state, `${grouped(this.#published)} published${transport}`, this.#published);
  }
}
