// Code to copy, for each kind of client that the server has switched on.

import { humanDuration } from "../shared/format.js";
import { create, element, setText } from "../shared/page.js";
import { type ClientAccess, type Kind, KINDS, kindsOf, snippet, type Subject } from "./snippets.js";

const COPIED_MS = 2_000;

/** What the code needs besides the kind of client. */
export type CodeSubject = Omit<Subject, "access" | "origin">;

const PACKAGES: Partial<Record<Kind, string>> = {
  native: "npm package linerate; without a build step, import /assets/linerate.js of this server",
  centrifuge: "npm package centrifuge. Filters and conflation are not part of this SDK",
  socketio: "npm package socket.io-client",
  pusher: "npm package pusher-js",
  phoenix: "npm package phoenix",
  raw: "any WebSocket client; pages of other origins have to be listed in server.origins",
  sse: "browsers, or the npm package eventsource",
  curl: "any HTTP client. The key stays on your servers",
};

export class CodeBox {
  readonly #access: ClientAccess;
  readonly #subject: () => CodeSubject;
  readonly #code = element("code");
  readonly #note = element("code-note");
  #kind: Kind;

  /** `subject` returns what the code is about. */
  constructor(access: ClientAccess, subject: () => CodeSubject) {
    this.#access = access;
    this.#subject = subject;
    const kinds = kindsOf(access);
    this.#kind = kinds[0] ?? "curl";
    element("code-kinds").append(...kinds.map((kind) => this.#choice(kind)));
    this.#offerToCopy(element("code-copy"));
    this.show();
  }

  /** Shows the code again, because something in it may have changed. */
  show(): void {
    setText(this.#code, this.#text());
    this.#code.dataset["kind"] = this.#kind;
    setText(this.#note, `${PACKAGES[this.#kind] ?? ""}. ${this.#aboutToken()}`.trim());
  }

  #text(): string {
    const subject = { ...this.#subject(), access: this.#access, origin: location.origin };
    return snippet(this.#kind, subject);
  }

  #aboutToken(): string {
    const { tokens } = this.#subject();
    if (this.#kind === "curl" || this.#kind === "pusher") {
      return "";
    }
    if (tokens !== undefined) {
      const time = humanDuration(tokens.expires_in_s);
      return `The token is for the user ${tokens.user} and expires in ${time}; in your application, your backend signs tokens.`;
    }
    return this.#access.needs_token
      ? "Replace TOKEN by a token that your backend signs; linerate token makes one for a test."
      : "";
  }

  #choice(kind: Kind): HTMLElement {
    const choice = create("label", "choice");
    const input = create("input");
    input.type = "radio";
    input.name = "kind";
    input.value = kind;
    input.checked = kind === this.#kind;
    input.dataset["testid"] = `kind-${kind}`;
    input.addEventListener("change", () => {
      this.#kind = kind;
      this.show();
    });
    choice.append(input, create("span", "", KINDS[kind]));
    return choice;
  }

  #offerToCopy(button: HTMLElement): void {
    // Only secure contexts have a clipboard.
    const clipboard = navigator.clipboard as Clipboard | undefined;
    button.hidden = clipboard === undefined;
    const say = (text: string) => {
      setText(button, text);
      setTimeout(() => setText(button, "Copy"), COPIED_MS);
    };
    button.addEventListener("click", () => {
      void clipboard?.writeText(this.#text()).then(
        () => say("Copied"),
        () => say("The browser does not allow copying"),
      );
    });
  }
}
