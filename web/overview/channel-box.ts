// Watches any channel of the server, and shows code that does the same elsewhere.

import { Client, type Publication, type Subscription } from "../client/src/linerate.js";
import { utcClock } from "../shared/format.js";
import { create, element, setText } from "../shared/page.js";
import { codeFor, publishCommandFor } from "./channel-code.js";
import { savedToken } from "./token.js";

/** Number of messages kept on the page. */
const MESSAGES_MAX = 6;
const COPIED_MS = 2_000;

/** The connection is opened when the user subscribes. */
export class ChannelBox {
  readonly #input = element("watch-channel") as HTMLInputElement;
  readonly #state = element("watch-state");
  readonly #messages = element("watch-messages");
  #client: Client | undefined;
  #subscription: Subscription | undefined;

  constructor() {
    this.#input.addEventListener("input", () => this.#showCode());
    element("watch-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#subscribe(this.#input.value.trim());
    });
    this.#offerToCopy(element("watch-copy"));
    this.#showCode();
  }

  #offerToCopy(button: HTMLElement): void {
    // Only secure contexts have a clipboard.
    const clipboard = navigator.clipboard as Clipboard | undefined;
    button.hidden = clipboard === undefined;
    const say = (text: string) => {
      setText(button, text);
      setTimeout(() => setText(button, "Copy the code"), COPIED_MS);
    };
    button.addEventListener("click", () => {
      const code = this.#code();
      void clipboard?.writeText(code).then(
        () => say("Copied"),
        () => say("The browser does not allow copying"),
      );
    });
  }

  #subscribe(channel: string): void {
    if (channel === "") {
      return;
    }
    const client = this.#open();
    this.#subscription?.unsubscribe();
    const subscription = client.subscribe(channel);
    subscription.on("publication", (publication) => this.#show(publication));
    subscription.on("subscribed", () => setText(this.#state, `subscribed to ${channel}`));
    subscription.on("unsubscribed", ({ code, reason }) => {
      if (subscription === this.#subscription && code !== 0) {
        setText(this.#state, `${channel}: ${reason} (${code})`);
      }
    });
    this.#subscription = subscription;
    setText(this.#state, `subscribing to ${channel} …`);
    this.#messages.replaceChildren();
  }

  #open(): Client {
    if (this.#client === undefined) {
      const token = savedToken();
      const client = new Client("", { name: "demo", ...(token !== undefined && { token }) });
      client.on("connecting", ({ reason, retryInMs }) => {
        setText(this.#state, retryInMs === 0 ? "connecting …" : `${reason}, reconnecting …`);
      });
      client.on("disconnected", ({ code, reason }) => {
        setText(this.#state, `disconnected: ${reason} (${code})`);
      });
      this.#client = client;
    }
    // Also after the server has refused it: the channel may be allowed now.
    this.#client.connect();
    return this.#client;
  }

  #show(publication: Publication): void {
    const row = create("li", "reply");
    const words = create("span", "reply-text", publication.text());
    words.dataset["testid"] = "watch-message";
    const time = create("span", "reply-time", `${utcClock(Date.now() / 1_000, true)} UTC`);
    row.append(words, time);
    this.#messages.prepend(row);
    while (this.#messages.childElementCount > MESSAGES_MAX) {
      this.#messages.lastElementChild?.remove();
    }
  }

  #code(): string {
    return codeFor(this.#input.value, location.origin, savedToken() !== undefined);
  }

  #showCode(): void {
    const channel = this.#input.value;
    setText(element("watch-publish"), publishCommandFor(channel));
    setText(element("watch-code"), this.#code());
  }
}
