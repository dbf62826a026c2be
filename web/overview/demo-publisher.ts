// The demo's publisher: a connection of its own, which publishes what is typed and as often as wanted.

import { Client } from "../client/src/linerate.js";
import { grouped } from "../shared/format.js";
import { element, setFigure, setText } from "../shared/page.js";
import { demoMessage } from "./demo-message.js";

/** How often the automatic publications that are due are published. */
const TICK_MS = 20;
/** Publications without an answer; while there are so many, nothing is published automatically. */
const PENDING_MAX = 1_000;
/** The most that is caught up with after the page could not run. */
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
    this.#client = new Client("", { name: "demo" });
    this.#client.on("connecting", ({ reason, retryInMs }) => {
      setText(this.#state, retryInMs === 0 ? "connecting …" : `${reason}, connecting again …`);
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
      setText(
        this.#trouble,
        `This server does not let the demo connect: ${reason} (${code}). It does so unless keys are configured.`,
      );
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

  /** Publishes what somebody typed. */
  async publish(text?: string): Promise<void> {
    this.#n += 1;
    this.#pending += 1;
    try {
      const message = demoMessage(this.#n, this.#page, performance.now(), text);
      await this.#client.publish(this.#channel, message);
      this.#published += 1;
      this.#show();
    } catch (error) {
      if (this.#client.state === "connected" || text !== undefined) {
        setText(this.#trouble, `Publishing in ${this.#channel} failed: ${String(error)}`);
      }
    } finally {
      this.#pending -= 1;
    }
  }

  /** Says why, if the server lets no page of its own connect: a browser tells nobody what a handshake ended with. */
  async #explain(): Promise<void> {
    const request = { method: "POST", body: "" };
    const answer = await fetch("/connection/http_stream", request).catch(() => undefined);
    await answer?.body?.cancel();
    if (answer?.status === 403) {
      setText(
        this.#trouble,
        `This server lists in server.origins whose pages may connect, and ${location.origin} is not among them.`,
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
    const transport = this.#client.transport === "http_stream" ? " by HTTP streaming" : "";
    setFigure(this.#state, `${grouped(this.#published)} published${transport}`, this.#published);
  }
}
