// Speed and time left, from the bytes that the server has acknowledged.

/** The speed shown is that of the last seconds, so that it follows changes without trembling. */
const WINDOW_MS = 2_000;
/** Without an acknowledgement for this long, the upload is said to be stalled. */
const STALLED_MS = 4_000;

interface Sample {
  atMs: number;
  bytes: number;
}

/** Times are milliseconds of any one clock. */
export class Speed {
  readonly #startedAtMs: number;
  #samples: Sample[];

  constructor(nowMs: number) {
    this.#startedAtMs = nowMs;
    this.#samples = [{ atMs: nowMs, bytes: 0 }];
  }

  /** Takes the bytes acknowledged so far. */
  handleProgress(bytes: number, nowMs: number): void {
    this.#samples.push({ atMs: nowMs, bytes });
    // One sample from before the window stays as its left edge.
    const recent = this.#samples.findIndex(({ atMs }) => atMs >= nowMs - WINDOW_MS);
    this.#samples = this.#samples.slice(Math.max(0, recent - 1));
  }

  /** Bytes per second over the last two seconds. */
  now(nowMs: number): number {
    const [first] = this.#samples;
    const last = this.#samples.at(-1);
    if (first === undefined || last === undefined || nowMs <= first.atMs) {
      return 0;
    }
    return ((last.bytes - first.bytes) * 1_000) / (nowMs - first.atMs);
  }

  /** Bytes per second since the start. */
  overall(nowMs: number): number {
    const bytes = this.#samples.at(-1)?.bytes ?? 0;
    return nowMs > this.#startedAtMs ? (bytes * 1_000) / (nowMs - this.#startedAtMs) : 0;
  }

  /** Seconds that `bytesLeft` will take at the present speed; null when there's no telling. */
  secondsLeft(bytesLeft: number, nowMs: number): number | null {
    const rate = this.now(nowMs);
    return rate > 0 ? bytesLeft / rate : null;
  }

  isStalled(nowMs: number): boolean {
    return nowMs - (this.#samples.at(-1)?.atMs ?? nowMs) > STALLED_MS;
  }

  secondsSinceStart(nowMs: number): number {
    return (nowMs - this.#startedAtMs) / 1_000;
  }
}
