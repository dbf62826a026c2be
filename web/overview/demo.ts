// The live demo: a publisher, three clients, and their charts.

import type { SubscribeOptions } from "../client/src/linerate.js";
import { element, setFigure } from "../shared/page.js";
import { DemoClient } from "./demo-client.js";
import { DemoPublisher } from "./demo-publisher.js";
import type { Sample } from "./demo-window.js";
import { LineChart } from "../shared/line-chart.js";

const SAMPLE_MS = 1_000;
const CLIENTS = ["Client 1", "Client 2", "Client 3"];
const COLOURS = ["--line-1", "--line-2", "--line-3"];

/** A chart, the figure of a sample that it shows, and the element that shows the current value. */
const CHARTS: { id: string; figure(sample: Sample): number | null }[] = [
  { id: "chart-rate", figure: ({ perSecond }) => perSecond },
  { id: "chart-batch", figure: ({ batchSize }) => batchSize },
  { id: "chart-latency", figure: ({ latencyMs }) => latencyMs },
];

export class Demo {
  readonly #page = crypto.getRandomValues(new Uint32Array(1))[0]?.toString(36) ?? "";
  readonly #publisher = new DemoPublisher(this.#page);
  readonly #clients: DemoClient[];
  readonly #charts = CHARTS.map(({ id, figure }) => ({
    chart: new LineChart(id, COLOURS),
    now: element(`${id}-now`),
    figure,
  }));
  readonly #channel = element("demo-channel") as HTMLInputElement;
  readonly #rate = element("demo-rate") as HTMLSelectElement;
  readonly #batch = element("demo-batch") as HTMLSelectElement;
  readonly #conflate = element("demo-conflate") as HTMLSelectElement;
  readonly #filter = element("demo-filter") as HTMLInputElement;
  #sampledAtMs = performance.now();

  readonly #isOutage: () => boolean;

  /** `isOutage` returns whether the broker is unreachable. */
  constructor(isOutage: () => boolean) {
    this.#isOutage = isOutage;
    const into = element("demo-clients");
    this.#clients = CLIENTS.map(
      (name, i) => new DemoClient(into, name, `swatch-line-${i + 1}`, this.#page),
    );
    // A separate channel, so that two visitors do not see each other's messages.
    this.#channel.value = `demo:${this.#page}`;
    this.#subscribe();
    this.#publisher.perSecond = Number(this.#rate.value);
    this.#rate.addEventListener("change", () => {
      this.#publisher.perSecond = Number(this.#rate.value);
    });
    for (const control of [this.#channel, this.#batch, this.#conflate, this.#filter]) {
      control.addEventListener("change", () => this.#subscribe());
    }
    element("demo-controls").addEventListener("submit", (event) => event.preventDefault());
    element("demo-publish").addEventListener("submit", (event) => {
      event.preventDefault();
      const input = element("demo-text") as HTMLInputElement;
      void this.#publisher.publish(input.value);
      input.select();
    });
    setInterval(() => this.#sample(), SAMPLE_MS);
  }

  #subscribe(): void {
    const channel = this.#channel.value.trim();
    if (channel === "") {
      return;
    }
    const filter = this.#filter.value.trim();
    const options: SubscribeOptions = {
      ...(this.#batch.value !== "" && { batchIntervalMs: Number(this.#batch.value) }),
      ...(this.#conflate.value !== "" && { conflate: this.#conflate.value }),
      ...(filter !== "" && { filter }),
    };
    this.#publisher.channel = channel;
    for (const client of this.#clients) {
      client.subscribe(channel, options);
    }
  }

  #sample(): void {
    const nowMs = performance.now();
    const seconds = (nowMs - this.#sampledAtMs) / 1_000;
    this.#sampledAtMs = nowMs;
    const samples = this.#clients.map(({ window }) => window.take(seconds));
    for (const { chart, now, figure } of this.#charts) {
      const values = samples.map(figure);
      chart.push(values, this.#isOutage());
      const texts = values.map((value) => (value === null ? "–" : value.toFixed(1)));
      setFigure(now, texts.join(" · "), Math.max(...values.map((value) => value ?? 0)));
    }
  }
}
