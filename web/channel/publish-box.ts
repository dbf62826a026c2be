// Publishing: as the client that this page is, or as the application.

import type { Client } from "../client/src/linerate.js";
import { counted, humanBytes } from "../shared/format.js";
import { element, setFigure, setText } from "../shared/page.js";
import type { Credentials } from "./credentials.js";
import { parseTags } from "./tags.js";

/** The most that a client publishes here, in bytes: in base64, a message holds no more. */
const CLIENT_BYTES_MAX = 48_000;

export class PublishBox {
  readonly #client: Client;
  readonly #channel: string;
  readonly #credentials: Credentials;
  readonly #explain: (error: unknown) => string;
  readonly #data = element("publish-data") as HTMLTextAreaElement;
  readonly #tags = element("publish-tags") as HTMLInputElement;
  readonly #as = element("publish-as") as HTMLSelectElement;
  readonly #check = element("publish-check");
  readonly #state = element("publish-state");
  readonly #trouble = element("publish-trouble");
  #published = 0;

  /** `explain` returns what an error means; `changed` is called when the payload has changed. */
  constructor(
    client: Client,
    channel: string,
    credentials: Credentials,
    explain: (error: unknown) => string,
    changed: () => void,
  ) {
    this.#client = client;
    this.#channel = channel;
    this.#credentials = credentials;
    this.#explain = explain;
    this.#data.addEventListener("input", () => {
      this.#showCheck();
      changed();
    });
    this.#as.addEventListener("change", () => this.#showTags());
    element("publish-as-field").hidden = !credentials.isAdministrator;
    this.#as.value = credentials.isAdministrator ? "application" : "client";
    this.#showTags();
    element("publish-form").addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#publish();
    });
    this.#showCheck();
  }

  /** The payload if it is JSON, otherwise as a JSON string. */
  get json(): string {
    const text = this.#data.value;
    return problemOf(text) === undefined ? text.trim() : JSON.stringify(text);
  }

  #showTags(): void {
    element("publish-tags-field").hidden = this.#as.value !== "application";
  }

  #showCheck(): void {
    const text = this.#data.value;
    const size = humanBytes(new TextEncoder().encode(text).length);
    const problem = problemOf(text);
    this.#check.dataset["json"] = String(problem === undefined);
    setText(
      this.#check,
      problem === undefined
        ? `valid JSON, ${size}`
        : `not JSON, published as text, ${size}: ${problem}`,
    );
  }

  async #publish(): Promise<void> {
    setText(this.#trouble, "");
    try {
      await (this.#as.value === "application" ? this.#asApplication() : this.#asClient());
      this.#published += 1;
      setFigure(this.#state, `${counted(this.#published, "message")} published`, this.#published);
    } catch (error) {
      setText(this.#trouble, this.#explain(error));
    }
  }

  async #asClient(): Promise<void> {
    // As bytes, so that it is published exactly as it was typed.
    const bytes = new TextEncoder().encode(this.#data.value);
    if (bytes.length > CLIENT_BYTES_MAX) {
      const size = humanBytes(bytes.length);
      throw new Error(
        `The message has ${size}; this page publishes at most ${humanBytes(CLIENT_BYTES_MAX)} as a client.`,
      );
    }
    await this.#client.publish(this.#channel, bytes);
  }

  async #asApplication(): Promise<void> {
    const tags = parseTags(this.#tags.value);
    const body = { channel: this.#channel, data: this.#data.value, tags };
    await this.#credentials.api.post("publish", body);
  }
}

/** Returns why `text` is not JSON; `undefined` if it is. */
function problemOf(text: string): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message.slice(0, 200) : String(error);
  }
}
