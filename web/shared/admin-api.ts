// Requests to /admin/api/, with the admin key.

import { EventStream, type StreamEvent } from "./event-stream.js";

const KEY_NAME = "linerate.admin-key";
const TIMEOUT_MS = 10_000;

/** The server answered with an error. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }

  /** True if another key may help. */
  get wantsKey(): boolean {
    return this.status === 401 || this.status === 403;
  }
}

export class AdminApi {
  /** The key for this browser tab; it is forgotten when the tab is closed. */
  get key(): string | null {
    return sessionStorage.getItem(KEY_NAME);
  }

  set key(key: string | null) {
    if (key === null) {
      sessionStorage.removeItem(KEY_NAME);
    } else {
      sessionStorage.setItem(KEY_NAME, key);
    }
  }

  /** Throws `Refused`, or the error of `fetch` if the server can't be reached. */
  async get<View>(path: string): Promise<View> {
    const response = await this.#fetch(path, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    return (await response.json()) as View;
  }

  async post<View>(path: string, body: object): Promise<View> {
    const response = await this.#fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    return (await response.json()) as View;
  }

  /**
   * Passes on the events of a stream until it ends or `signal` aborts it. `opened` is called before
   * the first event.
   */
  async follow(
    path: string,
    signal: AbortSignal,
    opened: () => void,
    handle: (event: StreamEvent) => void,
  ): Promise<void> {
    const response = await this.#fetch(path, { signal });
    opened();
    const stream = new EventStream(handle);
    const decoder = new TextDecoder();
    const reader = response.body?.getReader();
    for (;;) {
      const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
      if (done) {
        return;
      }
      stream.handleInput(decoder.decode(value, { stream: true }));
    }
  }

  async #fetch(path: string, init: RequestInit): Promise<Response> {
    const headers = new Headers(init.headers);
    if (this.key !== null) {
      headers.set("Authorization", `Bearer ${this.key}`);
    }
    const response = await fetch(`/admin/api/${path}`, { ...init, headers, cache: "no-store" });
    if (!response.ok) {
      throw new Refused(response.status, await messageOf(response));
    }
    return response;
  }
}

/** Returns the server's error message. */
async function messageOf(response: Response): Promise<string> {
  const text = await response.text().catch(() => "");
  try {
    const { error } = JSON.parse(text) as { error?: { message?: unknown } };
    return typeof error?.message === "string" ? error.message : `status ${response.status}`;
  } catch {
    return `status ${response.status}`;
  }
}
