// The overview page `/`: the live demo, live counters and the echo box.

import { LiveSocket, type LiveState } from "../shared/live-socket.js";
import { element, setText } from "../shared/page.js";
import { BrokerState } from "./broker-state.js";
import { CounterBoard, parseCounters } from "./counters.js";
import { Demo } from "./demo.js";
import { EchoBox } from "./echo-box.js";
import { connectTokenForm } from "../shared/token.js";

const board = new CounterBoard();
const broker = new BrokerState();
const status = element("live-state");
let countdown: ReturnType<typeof setInterval> | undefined;

const socket = new LiveSocket("/counters", {
  message(text) {
    const counters = parseCounters(text);
    if (counters !== null) {
      board.show(counters, performance.now());
      broker.show(counters.broker, counters.is_deaf, Date.now());
      showLive();
    }
  },
  state: showState,
});
element("retry-now").addEventListener("click", () => socket.retryNow());
connectTokenForm();
new Demo(() => broker.isOut);
new EchoBox();

function showState(state: LiveState): void {
  clearInterval(countdown);
  if (state.kind === "open") {
    return; // "live" is shown once the first counters have arrived.
  }
  board.pause();
  document.body.dataset["live"] = state.kind;
  if (state.kind === "connecting") {
    setText(status, "connecting …");
    return;
  }
  if (state.kind === "refused") {
    setText(status, "off: keys are configured and server.diagnostics is not set");
    return;
  }
  const retryAtMs = performance.now() + state.retryInMs;
  const tick = () => {
    const seconds = Math.max(1, Math.ceil((retryAtMs - performance.now()) / 1_000));
    setText(status, `connection lost, retrying in ${seconds} s`);
  };
  tick();
  countdown = setInterval(tick, 500);
}

function showLive(): void {
  document.body.dataset["live"] = "live";
  setText(status, "live");
}
