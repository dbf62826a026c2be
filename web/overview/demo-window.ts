// What a client receives in a second, as the charts show it.

/** Figures of one window; `null` where nothing arrived to take them of. */
export interface Sample {
  perSecond: number;
  batchSize: number | null;
  latencyMs: number | null;
}

/** Collects what arrives until it is asked. */
export class DemoWindow {
  #messages = 0;
  #batches = 0;
  #latenciesMs: number[] = [];

  /** Adds what arrived at once: how many, and how long those took of which that is known. */
  add(messages: number, latenciesMs: readonly number[]): void {
    this.#messages += messages;
    this.#batches += 1;
    this.#latenciesMs.push(...latenciesMs);
  }

  /** Returns the figures of the last `seconds`, and starts over. */
  take(seconds: number): Sample {
    const sample = {
      perSecond: seconds > 0 ? this.#messages / seconds : 0,
      batchSize: this.#batches > 0 ? this.#messages / this.#batches : null,
      latencyMs: median(this.#latenciesMs),
    };
    this.#messages = 0;
    this.#batches = 0;
    this.#latenciesMs = [];
    return sample;
  }
}

/** Returns the middle of `values`, of two middles the lower one. */
function median(values: number[]): number | null {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? null;
}
