// How the page connects: without a token, with the one that the user has entered, or with tokens
// that the admin API makes.

import { type ClientOptions, type SubscribeOptions, Unauthorized } from "../client/src/linerate.js";
import { AdminApi } from "../shared/admin-api.js";
import { savedToken } from "../shared/token.js";
import type { ClientAccess, Tokens } from "./snippets.js";

/** Tokens are requested again after this time. */
const FRESH_MS = 10_000;

export class Credentials {
  readonly api = new AdminApi();
  readonly #channel: string;
  #tokens: Tokens | undefined;
  #atMs = 0;
  #namespaces: string[] | undefined;

  constructor(channel: string) {
    this.#channel = channel;
  }

  /** Finds out what the admin API offers this page. */
  async prepare(access: ClientAccess): Promise<void> {
    if (!access.is_open && this.api.key === null) {
      return;
    }
    const { settings } = await this.api.get<{ settings: { key: string; value: string }[] }>(
      "settings",
    );
    this.#namespaces = settings
      .filter(({ key }) => /^namespace\[\d+\]\.name$/.test(key))
      .map(({ value }) => String(JSON.parse(value)));
    if (!access.is_open) {
      // Without a secret to sign with, there are none.
      await this.#refresh().catch(() => {});
    }
  }

  /** The configured namespaces, if the admin API reports them. */
  get namespaces(): readonly string[] | undefined {
    return this.#namespaces;
  }

  /** True if the page may publish as the application does. */
  get isAdministrator(): boolean {
    return this.#namespaces !== undefined;
  }

  /** The tokens that were made last, if the admin API makes some. */
  get tokens(): Tokens | undefined {
    return this.#tokens;
  }

  /** Returns how a client connects. */
  clientOptions(): ClientOptions {
    const saved = savedToken();
    if (saved !== undefined) {
      return { token: saved };
    }
    return this.#tokens === undefined
      ? {}
      : { token: async () => (await this.#fresh()).connection };
  }

  /** Returns how a client subscribes to the channel. */
  subscribeOptions(): SubscribeOptions {
    // A token for the channel has to be of the user of the connection.
    return this.#tokens === undefined || savedToken() !== undefined
      ? {}
      : { token: async () => (await this.#fresh()).channel };
  }

  async #fresh(): Promise<Tokens> {
    if (this.#tokens !== undefined && performance.now() - this.#atMs < FRESH_MS) {
      return this.#tokens;
    }
    try {
      return await this.#refresh();
    } catch (error) {
      throw new Unauthorized(String(error));
    }
  }

  async #refresh(): Promise<Tokens> {
    const tokens = await this.api.post<Tokens>("tokens", { channel: this.#channel });
    this.#tokens = tokens;
    this.#atMs = performance.now();
    return tokens;
  }
}
