// What a client receives in a second, as shown in the charts.

/** Figures of one window; `null` if nothing arrived to compute them from. */
export interface Sample {
  perSecond: number;
  batchSize: number | null;
  latencyMs: number | null;
}

/** Collects arrivals until the figures are taken. */
export class DemoWindow {
  #messages = 0;
  #batches = 0;
  #latenciesMs: number[] = [];

  /** Adds messages that arrived together: their number, and the known latencies. */
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

/** Returns the median of `values`, or the lower of two medians. */
function median(values: number[]): number | null {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? null;
}
