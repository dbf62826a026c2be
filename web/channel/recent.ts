// The latest messages, bounded in number and in bytes.

/** Keeps the newest items; the oldest are dropped when there are too many, or too many bytes. */
export class Recent<Item extends { readonly bytes: { readonly length: number } }> {
  readonly #itemsMax: number;
  readonly #bytesMax: number;
  #items: Item[] = [];
  #bytes = 0;

  constructor(itemsMax: number, bytesMax: number) {
    this.#itemsMax = itemsMax;
    this.#bytesMax = bytesMax;
  }

  /** The items, newest first. */
  get items(): readonly Item[] {
    return this.#items;
  }

  /** Adds items, the oldest first. The newest one is kept even if it alone has too many bytes. */
  add(items: readonly Item[]): void {
    const newest = items.slice(-this.#itemsMax).reverse();
    this.#items = [...newest, ...this.#items];
    this.#bytes += newest.reduce((sum, { bytes }) => sum + bytes.length, 0);
    while (
      this.#items.length > this.#itemsMax ||
      (this.#bytes > this.#bytesMax && this.#items.length > 1)
    ) {
      this.#bytes -= this.#items.pop()?.bytes.length ?? 0;
    }
  }

  clear(): void {
    this.#items = [];
    this.#bytes = 0;
  }
}
