// What an SDK tells, in the order in which it does, and how to wait for it.

/** Generous, since the machine may be small and busy; nothing waits this long unless it is broken. */
const PATIENCE_MS = 30_000;

/** Returns what `promise` brings, or fails once patience is over. */
export async function within(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited in vain for ${what}`)), PATIENCE_MS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Keeps the events of a client or a subscription. */
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

  /** Returns the next event of that name, and passes over others before it. */
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

  /** Returns the contexts of so many events of that name. */
  async take(name, count) {
    const contexts = [];
    while (contexts.length < count) {
      contexts.push(await this.next(name));
    }
    return contexts;
  }

  /** Returns the contexts of all events of that name so far, those that `next` passed over included. */
  all(name) {
    return this.#entries.filter((entry) => entry.name === name).map(({ context }) => context);
  }

  names() {
    return this.#entries.map(({ name }) => name);
  }
}
