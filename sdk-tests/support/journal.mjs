// The events of an SDK in order, and a way to wait for them.

/** Generous because the machine may be small and busy; only a failure takes this long. */
const PATIENCE_MS = 30_000;

/** Returns the result of `promise`, or fails after PATIENCE_MS. */
export async function within(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`timed out waiting for ${what}`)), PATIENCE_MS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Records the events of a client or a subscription. */
export class Journal {
  #entries = [];
  #read = 0;
  #wake = () => {};

  constructor(emitter, names) {
    for (const name of names) {
      emitter.on(name, (context) => {
        this.#entries.push({ name, context });
        this.#wake();
      });
    }
  }

  /** Returns the next event of that name, and skips others before it. */
  async next(name, isMeant = () => true) {
    const found = async () => {
      for (;;) {
        while (this.#read < this.#entries.length) {
          const entry = this.#entries[this.#read++];
          if (entry.name === name && isMeant(entry.context)) {
            return entry.context;
          }
        }
        await new Promise((resolve) => (this.#wake = resolve));
      }
    };
    return within(found(), `${name} after ${this.names().join(", ") || "nothing"}`);
  }

  /** Returns the contexts of the next `count` events of that name. */
  async take(name, count) {
    const contexts = [];
    while (contexts.length < count) {
      contexts.push(await this.next(name));
    }
    return contexts;
  }

  /**
   * Returns the contexts of all events of that name so far, including those that `next` skipped.
   */
  all(name) {
    return this.#entries.filter((entry) => entry.name === name).map(({ context }) => context);
  }

  /** Returns all events so far, in order. */
  entries() {
    return this.#entries;
  }

  names() {
    return this.#entries.map(({ name }) => name);
  }
}
