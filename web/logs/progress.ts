// The progress bar above the figures: how far and how fast the file is read, and the result.

import { grouped, humanBytes, humanDuration, megabytesPerSecond } from "../shared/format.js";
import { element, setFigure, setText } from "../shared/page.js";
import { announce } from "./announcer.js";
import { Speed } from "./speed.js";

/** How often the figures beside the bar change, so that they stay readable. */
const FIGURES_EVERY_MS = 250;
/** Steps of progress that are announced to screen readers. */
const SPOKEN_STEP = 25;

export class Progress {
  readonly #name: string;
  readonly #size: number;
  readonly #speed: Speed;
  readonly #timer: ReturnType<typeof setInterval>;
  #acknowledged = 0;
  #spoken = 0;
  #isConnected = true;
  #isOver = false;

  /** `name` and `size` (in bytes) are those of the log. */
  constructor({ name, size }: { name: string; size: number }) {
    this.#name = name;
    this.#size = size;
    this.#speed = new Speed(performance.now());
    showSize(size);
    setText(element("time-left"), "connecting …");
    setText(element("speed"), "– MB/s");
    announce(`Reading ${name}, ${humanBytes(size)}`);
    this.#showBar();
    this.#timer = setInterval(() => this.#showFigures(), FIGURES_EVERY_MS);
  }

  /** Updates the bytes acknowledged so far; called a few times a second. */
  handleProgress(acknowledged: number): void {
    this.#acknowledged = acknowledged;
    this.#speed.handleProgress(acknowledged, performance.now());
    this.#showBar();
  }

  /** Updates whether there is a connection; without one, only that is shown. */
  handleConnection(isConnected: boolean): void {
    this.#isConnected = isConnected;
    if (!isConnected) {
      announce("Connection lost, reconnecting");
    }
    if (!this.#isOver) {
      this.#showFigures();
    }
  }

  /** Stops the clock. `verdict` replaces the time left: "read in", "cancelled after". */
  end(verdict: string): void {
    if (this.#isOver) {
      return;
    }
    this.#isOver = true;
    clearInterval(this.#timer);
    const seconds = this.#speed.secondsSinceStart(performance.now());
    const rate = this.#speed.overall(performance.now());
    setFigure(element("speed"), megabytesPerSecond(rate), rate);
    const took = seconds < 10 ? `${seconds.toFixed(1)} s` : humanDuration(seconds);
    setText(element("time-left"), `${verdict} ${took}`);
  }

  get fraction(): number {
    return this.#size === 0 ? 1 : this.#acknowledged / this.#size;
  }

  #showBar(): void {
    const percent = 100 * this.fraction;
    showPart(this.#acknowledged, percent);
    if (percent >= this.#spoken + SPOKEN_STEP && percent < 100) {
      this.#spoken = Math.floor(percent / SPOKEN_STEP) * SPOKEN_STEP;
      announce(`${this.#spoken} percent of ${this.#name}`);
    }
  }

  #showFigures(): void {
    const now = performance.now();
    if (!this.#isConnected) {
      setText(element("time-left"), "reconnecting …");
      setFigure(element("speed"), megabytesPerSecond(0), 0);
      return;
    }
    if (this.#speed.isStalled(now)) {
      setText(element("time-left"), "waiting for the server …");
      setFigure(element("speed"), megabytesPerSecond(0), 0);
      return;
    }
    const rate = this.#speed.now(now);
    setFigure(element("speed"), megabytesPerSecond(rate), rate);
    const left = this.#speed.secondsLeft(this.#size - this.#acknowledged, now);
    setText(
      element("time-left"),
      left === null ? "starting …" : `${humanDuration(Math.ceil(left))} left`,
    );
  }
}

/** Shows how much of an upload has arrived that this page does not send. */
export function showArrived(bytes: number, size: number): void {
  showSize(size);
  showPart(bytes, size === 0 ? 100 : (100 * bytes) / size);
  setText(element("speed"), "");
  setText(element("time-left"), "");
}

function showSize(size: number): void {
  setText(element("file-size"), humanBytes(size));
  element("file-size").title = `${grouped(size)} bytes`;
}

function showPart(bytes: number, percent: number): void {
  const bar = element("progress");
  bar.setAttribute("aria-valuenow", percent.toFixed(0));
  bar.style.setProperty("--done", `${percent.toFixed(2)}%`);
  setFigure(element("acknowledged"), humanBytes(bytes), bytes);
  // Rounded down: 100 % is shown only when everything has been read.
  setFigure(element("percent"), `${Math.floor(percent)} %`, percent);
}
