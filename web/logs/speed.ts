// Speed and time left, from the bytes that the server has acknowledged.

/** The speed is averaged over this time, so that it follows changes without jitter. */
const WINDOW_MS = 2_000;
/** Without an acknowledgement for this long, the upload counts as stalled. */
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

  /** Records the bytes acknowledged so far. */
  handleProgress(bytes: number, nowMs: number): void {
    this.#samples.push({ atMs: nowMs, bytes });
    // One sample from before the window is kept as its left edge.
    const recent = this.#samples.findIndex(({ atMs }) => atMs >= nowMs - WINDOW_MS);
    this.#samples = this.#samples.slice(Math.max(0, recent - 1));
  }

  /** Returns bytes per second over the last two seconds. */
  now(nowMs: number): number {
    const [first] = this.#samples;
    const last = this.#samples.at(-1);
    if (first === undefined || last === undefined || nowMs <= first.atMs) {
      return 0;
    }
    return ((last.bytes - first.bytes) * 1_000) / (nowMs - first.atMs);
  }

  /** Returns bytes per second since the start. */
  overall(nowMs: number): number {
    const bytes = this.#samples.at(-1)?.bytes ?? 0;
    return nowMs > this.#startedAtMs ? (bytes * 1_000) / (nowMs - this.#startedAtMs) : 0;
  }

  /** Returns the seconds that `bytesLeft` takes at the current speed; null if that is unknown. */
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
