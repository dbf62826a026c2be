// A client of the demo: a connection, and a card that shows what it receives.

import {
  Client,
  type Publication,
  type SubscribeOptions,
  type Subscription,
} from "../client/src/linerate.js";
import { grouped, milliseconds } from "../shared/format.js";
import { create, element, oncePerFrame, setFigure, setText } from "../shared/page.js";
import { describe, latencyOf } from "./demo-message.js";
import { DemoWindow } from "./demo-window.js";
import { savedToken } from "../shared/token.js";

/** Number of messages kept on a card. */
const MESSAGES_MAX = 5;

/** The name of each transport on the page. */
const TRANSPORTS = { websocket: "WebSocket", http_stream: "HTTP streaming" };

/** The parts of a card. */
function newCard(): HTMLElement {
  const template = element("demo-client-template") as HTMLTemplateElement;
  const copy = template.content.cloneNode(true) as DocumentFragment;
  return copy.firstElementChild as HTMLElement;
}

export class DemoClient {
  readonly window = new DemoWindow();
  readonly #page: string;
  readonly #card = newCard();
  readonly #state: HTMLElement;
  readonly #messages: HTMLElement;
  readonly #account: HTMLElement;
  readonly #client: Client;
  #socket: WebSocket | undefined;
  #subscription: Subscription | undefined;
  #received = 0;
  #missed = 0;
  #news = "";
  /** The messages to show when the browser next draws. */
  #latest: { text: string; latencyMs: number | undefined }[] = [];
  readonly #draw = oncePerFrame(() => this.#drawMessages());

  /**
   * Puts a card into `into`; `colour` is a class name, `page` names this page in what it publishes.
   */
  constructor(into: HTMLElement, name: string, colour: string, page: string) {
    this.#page = page;
    const part = (selector: string) => this.#card.querySelector(selector) as HTMLElement;
    setText(part(".client-name"), name);
    part(".swatch").classList.add(colour);
    this.#state = part(".client-state");
    this.#messages = part(".client-messages");
    this.#account = part(".client-account");
    this.#messages.setAttribute("aria-label", `Messages received by ${name}, newest first`);
    const cut = part(".client-cut");
    cut.setAttribute("aria-label", `Cut the connection of ${name}`);
    cut.addEventListener("click", () => this.#socket?.close());
    into.append(this.#card);
    this.#client = this.#connect();
  }

  /** Subscribes to `channel` in place of the previous channel. */
  subscribe(channel: string, options: SubscribeOptions): void {
    this.#subscription?.unsubscribe();
    this.#news = "";
    const subscription = this.#client.subscribe(channel, options);
    subscription.on("batch", (batch) => this.#receive(batch));
    subscription.on("subscribed", ({ recovered }) => {
      this.#news = recovered === true ? "reconnected and recovered everything" : this.#news;
      this.#showState();
    });
    subscription.on("gap", ({ missed }) => {
      this.#missed += missed ?? 0;
      this.#news = missed === undefined ? "missed some messages" : `missed ${grouped(missed)}`;
      this.#showAccount();
    });
    subscription.on("unsubscribed", ({ code, reason }) => {
      if (subscription === this.#subscription && code !== 0) {
        this.#say("refused", `refused: ${reason} (${code})`);
      }
    });
    this.#subscription = subscription;
    this.#showState();
  }

  #connect(): Client {
    const remember = (socket: WebSocket) => (this.#socket = socket);
    // The socket is kept so that it can be closed abruptly, like a cut cable.
    class CuttableSocket extends WebSocket {
      constructor(url: string, subprotocols: string[]) {
        super(url, subprotocols);
        remember(this);
      }
    }
    const token = savedToken();
    const client = new Client("", {
      name: "demo",
      environment: { WebSocket: CuttableSocket },
      ...(token !== undefined && { token }),
    });
    client.on("connected", () => this.#showState());
    client.on("connecting", ({ reason, retryInMs }) => {
      const again =
        retryInMs === 0 ? "connecting …" : `${reason}, reconnecting in ${seconds(retryInMs)}`;
      this.#say("connecting", again);
    });
    client.on("disconnected", ({ code, reason }) => {
      this.#say("refused", `disconnected: ${reason} (${code})`);
    });
    client.connect();
    return client;
  }

  #receive(batch: readonly Publication[]): void {
    const nowMs = performance.now();
    const arrived = batch.map((publication) => arrival(publication, this.#page, nowMs));
    const latencies = arrived.flatMap(({ latencyMs }) =>
      latencyMs === undefined ? [] : latencyMs,
    );
    this.window.add(batch.length, latencies);
    this.#received += batch.length;
    this.#latest = [...arrived.slice(-MESSAGES_MAX).reverse(), ...this.#latest];
    this.#latest.length = Math.min(this.#latest.length, MESSAGES_MAX);
    this.#draw();
  }

  #drawMessages(): void {
    const rows = this.#latest.map(({ text, latencyMs }) => {
      const row = create("li", "reply");
      const words = create("span", "reply-text", text);
      words.dataset["testid"] = "demo-message";
      row.append(words);
      if (latencyMs !== undefined) {
        row.append(create("span", "reply-time", milliseconds(latencyMs)));
      }
      return row;
    });
    this.#messages.replaceChildren(...rows);
    this.#showAccount();
  }

  #showAccount(): void {
    const news = this.#news === "" ? "" : `, ${this.#news}`;
    setFigure(this.#account, `${grouped(this.#received)} received${news}`, this.#received);
    this.#account.dataset["missed"] = String(this.#missed);
  }

  #showState(): void {
    const { transport } = this.#client;
    if (this.#client.state !== "connected" || transport === undefined) {
      return;
    }
    if (this.#subscription?.state === "subscribed") {
      this.#say("subscribed", `subscribed over ${TRANSPORTS[transport]}`);
      this.#card.classList.toggle("client-uncuttable", transport !== "websocket");
    } else {
      this.#say("connecting", "subscribing …");
    }
  }

  #say(state: "connecting" | "subscribed" | "refused", text: string): void {
    this.#card.dataset["state"] = state;
    setText(this.#state, text);
  }
}

function arrival(publication: Publication, page: string, nowMs: number) {
  const text = publication.text();
  let payload: unknown;
  try {
    payload = publication.json();
  } catch {
    return { text, latencyMs: undefined };
  }
  return { text: describe(payload, text), latencyMs: latencyOf(payload, page, nowMs) };
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
