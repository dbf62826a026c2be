// A bounded queue for an async iterator, which drops the oldest items when it is full.

/** A queue with one reader that iterates over it. */
export class Inbox<Item> implements AsyncIterableIterator<Item> {
  readonly #weightMax: number;
  readonly #weigh: (item: Item) => number;
  readonly #ended: (inbox: Inbox<Item>) => void;
  #items: Item[] = [];
  #head = 0;
  #weight = 0;
  #waiting: { resolve(result: IteratorResult<Item>): void; reject(error: Error): void }[] = [];
  #end: { error: Error | undefined } | undefined;

  /**
   * Holds items of at most `weightMax` total weight, or a single item. `ended` is called when the
   * reader stops.
   */
  constructor(
    weightMax: number,
    weigh: (item: Item) => number,
    ended: (inbox: Inbox<Item>) => void,
  ) {
    this.#weightMax = weightMax;
    this.#weigh = weigh;
    this.#ended = ended;
  }

  /** Appends `item`; returns the weight of the items that were dropped. */
  push(item: Item): number {
    if (this.#end !== undefined) {
      return 0;
    }
    const reader = this.#waiting.shift();
    if (reader !== undefined) {
      reader.resolve({ done: false, value: item });
      return 0;
    }
    this.#items.push(item);
    this.#weight += this.#weigh(item);
    const before = this.#weight;
    while (this.#weight > this.#weightMax && this.#items.length - this.#head > 1) {
      this.#take();
    }
    return before - this.#weight;
  }

  /** Ends the queue: the reader gets the remaining items, then the end or `error`. */
  end(error?: Error): void {
    if (this.#end !== undefined) {
      return;
    }
    const [first, ...others] = this.#waiting.splice(0);
    const done = { done: true, value: undefined } as const;
    if (first === undefined || error === undefined) {
      first?.resolve(done);
      this.#end = { error };
    } else {
      first.reject(error);
      this.#end = { error: undefined };
    }
    others.forEach((reader) => reader.resolve(done));
  }

  next(): Promise<IteratorResult<Item>> {
    if (this.#head < this.#items.length) {
      return Promise.resolve({ done: false, value: this.#take() });
    }
    if (this.#end?.error !== undefined) {
      const { error } = this.#end;
      this.#end = { error: undefined };
      return Promise.reject(error);
    }
    if (this.#end !== undefined) {
      return Promise.resolve({ done: true, value: undefined });
    }
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  return(): Promise<IteratorResult<Item>> {
    this.#items = [];
    this.#head = 0;
    this.#weight = 0;
    this.end();
    this.#ended(this);
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #take(): Item {
    const item = this.#items[this.#head] as Item;
    this.#head += 1;
    this.#weight -= this.#weigh(item);
    // Moving the remaining items for each one taken would be quadratic in the length.
    if (this.#head > 1_024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }
}
