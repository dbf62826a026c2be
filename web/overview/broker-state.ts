// The state of the link to the broker, as /counters reports it.

import { utcClock } from "../shared/format.js";
import { element, setText } from "../shared/page.js";

/** Shows an outage of the broker for as long as it lasts. */
export class BrokerState {
  readonly #note = element("outage");
  #deafSinceMs: number | undefined;

  /** True if the broker was unreachable when the server last reported. */
  get isOut(): boolean {
    return this.#deafSinceMs !== undefined;
  }

  /** Shows what the server reported at `atMs`, in milliseconds since 1970. */
  show(broker: string, isDeaf: boolean, atMs: number): void {
    this.#deafSinceMs = isDeaf ? (this.#deafSinceMs ?? atMs) : undefined;
    setText(element("broker"), broker);
    const state = element("broker-state");
    state.dataset["link"] = isDeaf ? "deaf" : "up";
    setText(state, isDeaf ? "unreachable: nothing arrives" : "up: publications arrive");
    this.#note.hidden = this.#deafSinceMs === undefined;
    if (this.#deafSinceMs !== undefined) {
      const since = utcClock(this.#deafSinceMs / 1_000, true);
      setText(
        this.#note,
        `The broker (${broker}) has been unreachable since ${since} UTC. Publications do not arrive. ` +
          "Clients stay connected, and are told what they missed when it is back.",
      );
    }
  }
}
