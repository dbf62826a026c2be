// The rates of the last minute: published, and received with the options that the user wishes.

import { compact, humanBytes } from "../shared/format.js";
import { LineChart } from "../shared/line-chart.js";
import { element, setFigure } from "../shared/page.js";
import type { Meter } from "./meter.js";

const SAMPLE_MS = 1_000;
const COLOURS = ["--line-1", "--line-2"];

export class Rates {
  readonly #meters: { published: Meter; received: Meter };
  readonly #messages = new LineChart("chart-messages", COLOURS, compactRate);
  readonly #bytes = new LineChart("chart-bytes", COLOURS, (value) => humanBytes(Math.round(value)));
  #sampledAtMs = performance.now();

  /** `sampled` is called once per second; `isSplit` returns whether there are two subscriptions. */
  constructor(
    meters: { published: Meter; received: Meter },
    isSplit: () => boolean,
    sampled: () => void,
  ) {
    this.#meters = meters;
    setInterval(() => {
      this.#sample(isSplit());
      sampled();
    }, SAMPLE_MS);
  }

  #sample(isSplit: boolean): void {
    const nowMs = performance.now();
    const seconds = (nowMs - this.#sampledAtMs) / 1_000;
    this.#sampledAtMs = nowMs;
    const published = this.#meters.published.take(seconds);
    const received = this.#meters.received.take(seconds);
    this.#messages.push([published.messages, isSplit ? received.messages : null], false);
    this.#bytes.push([published.bytes, isSplit ? received.bytes : null], false);
    document.body.dataset["split"] = String(isSplit);
    for (const [name, { messages, bytes }] of [
      ["published", published],
      ["received", received],
    ] as const) {
      setFigure(element(`${name}-messages`), compactRate(messages), messages);
      setFigure(element(`${name}-bytes`), humanBytes(Math.round(bytes)), bytes);
    }
  }
}

function compactRate(perSecond: number): string {
  return perSecond > 0 && perSecond < 10 ? perSecond.toFixed(1) : compact(Math.round(perSecond));
}
