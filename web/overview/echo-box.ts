// The echo box: sends what you type to /echo and shows the reply with its round-trip time.

import { LiveSocket, type LiveState } from "../shared/live-socket.js";
import { create, element, setText } from "../shared/page.js";
import { milliseconds } from "../shared/format.js";

/** Number of replies kept on the page. */
const REPLIES_MAX = 4;
/** The maximum number of unanswered messages; more are refused. */
const PENDING_MAX = 32;

/** Connects the form of the overview; the connection opens on its first use. */
export class EchoBox {
  readonly #input = element("echo-input") as HTMLInputElement;
  readonly #state = element("echo-state");
  readonly #replies = element("echo-replies");
  #socket: LiveSocket | undefined;
  /** When each unanswered message was sent; /echo answers in order. */
  #sentAtMs: number[] = [];
  #unsent: string | undefined;

  constructor() {
    this.#input.addEventListener("focus", () => this.#open());
    element("echo-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit(this.#input.value);
    });
  }

  #open(): LiveSocket {
    this.#socket ??= new LiveSocket("/echo", {
      message: (text) => this.#showReply(text),
      state: (state) => this.#showState(state),
    });
    return this.#socket;
  }

  #submit(text: string): void {
    if (text === "" || this.#sentAtMs.length >= PENDING_MAX) {
      return;
    }
    const socket = this.#open();
    const at = performance.now();
    if (socket.send(text)) {
      this.#sentAtMs.push(at);
      this.#input.select();
    } else {
      this.#unsent = text;
      socket.retryNow();
    }
  }

  #showReply(text: string): void {
    const sentAt = this.#sentAtMs.shift();
    const reply = create("li", "reply");
    const words = create("span", "reply-text", text);
    words.dataset["testid"] = "echo-reply";
    reply.append(words);
    if (sentAt !== undefined) {
      const ms = performance.now() - sentAt;
      const time = create("span", "reply-time", milliseconds(ms));
      time.dataset["testid"] = "echo-round-trip";
      time.dataset["value"] = String(ms);
      reply.append(time);
    }
    this.#replies.prepend(reply);
    while (this.#replies.childElementCount > REPLIES_MAX) {
      this.#replies.lastElementChild?.remove();
    }
  }

  #showState(state: LiveState): void {
    this.#state.dataset["state"] = state.kind;
    if (state.kind === "connecting") {
      setText(this.#state, "connecting to /echo …");
    } else if (state.kind === "refused") {
      setText(this.#state, "off: keys are configured and server.diagnostics is not set");
    } else if (state.kind === "lost") {
      this.#sentAtMs = [];
      setText(this.#state, "connection lost, retrying …");
    } else {
      setText(this.#state, "connected to /echo");
      const text = this.#unsent;
      this.#unsent = undefined;
      if (text !== undefined) {
        this.#submit(text);
      }
    }
  }
}
