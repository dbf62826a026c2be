// Commands that wait for their replies.

import type { Environment } from "./environment.js";
import { ServerError, TimedOut } from "./errors.js";
import type { Commands, Reply } from "./messages.js";

/** Handles a reply. Called synchronously, so that nothing in the same frame overtakes it. */
export interface Settle<Result> {
  resolve(result: Result): void;
  reject(error: Error): void;
}

interface Waiting extends Settle<object> {
  method: keyof Commands;
  cancelTimer(): void;
}

/** Numbers the commands of one connection, and matches replies to them. */
export class Requests {
  readonly #environment: Environment;
  readonly #timeoutMs: number;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;

  constructor(environment: Environment, timeoutMs: number) {
    this.#environment = environment;
    this.#timeoutMs = timeoutMs;
  }

  /** Returns the text of a command whose reply will settle `settle`. */
  start<Method extends keyof Commands>(
    method: Method,
    request: Commands[Method][0],
    settle: Settle<Commands[Method][1]>,
  ): string {
    this.#lastId += 1;
    const id = this.#lastId;
    const cancelTimer = this.#environment.after(this.#timeoutMs, () => {
      this.#waiting.delete(id);
      settle.reject(new TimedOut(`no answer to ${method} within ${this.#timeoutMs} ms`));
    });
    const { resolve, reject } = settle as Settle<object>;
    this.#waiting.set(id, { method, resolve, reject, cancelTimer });
    return JSON.stringify({ id, [method]: request });
  }

  /** Settles the command that `reply` answers, if it is still waiting. */
  settle(id: number, reply: Reply): void {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) {
      return;
    }
    this.#waiting.delete(id);
    waiting.cancelTimer();
    if (reply.error !== undefined) {
      const { code, message, temporary } = reply.error;
      waiting.reject(new ServerError(code, message, temporary));
    } else {
      waiting.resolve(reply[waiting.method] ?? {});
    }
  }

  /** Rejects all waiting commands. */
  failAll(error: Error): void {
    for (const [id, waiting] of [...this.#waiting]) {
      this.#waiting.delete(id);
      waiting.cancelTimer();
      waiting.reject(error);
    }
  }
}
