// The link to the broker, and its latest changes.

import { counted, humanDuration, utcClock, utcDay } from "../shared/format.js";
import { create, element, setText } from "../shared/page.js";
import type { BrokerLink, Change } from "./views.js";

const CHANGES_SHOWN = 20;

const REASONS: Record<string, string> = {
  link_lost: "the link was lost",
  overflow: "messages arrived faster than they could be processed",
  oversized: "a message exceeded the limit",
  stream_reset: "the stream was reset",
};

export function showBroker(view: BrokerLink): void {
  const isUp = view.link === "up";
  const trip =
    view.round_trip_ms === null ? "" : `, ${view.round_trip_ms.toFixed(1)} ms round trip`;
  const state = element("broker-state");
  state.dataset["link"] = view.link;
  setText(
    state,
    isUp ? `${view.broker}: up${trip}` : `${view.broker}: unreachable, nothing arrives`,
  );
  const gaps = view.gaps === 0 ? "no gaps" : counted(view.gaps, "gap");
  const time = view.gaps === 0 ? "" : `, ${durationText(view.gap_time_ms)} in total`;
  setText(element("broker-gaps"), `${gaps} since the start${time}`);
  const rows = view.timeline.slice(0, CHANGES_SHOWN).map(changeRow);
  const none = create("li", "note", "The link has not changed since the start.");
  element("broker-changes").replaceChildren(...(rows.length === 0 ? [none] : rows));
}

function changeRow(change: Change): HTMLElement {
  const row = create("li", "change");
  row.dataset["change"] = change.change;
  const seconds = change.at_ms / 1_000;
  row.append(
    create("span", "note change-time", `${utcDay(seconds)} ${utcClock(seconds, true)} UTC`),
    create("span", "", describe(change)),
  );
  return row;
}

function describe(change: Change): string {
  if (change.change === "up") {
    return "up: publications arrive";
  }
  if (change.change === "deaf") {
    return "unreachable: nothing arrives";
  }
  const where = change.channels === null ? "all channels" : counted(change.channels, "channel");
  const why = REASONS[change.reason] ?? change.reason;
  return `gap of up to ${durationText(change.lasted_ms)} in ${where}: ${why}`;
}

function durationText(ms: number): string {
  return ms < 10_000 ? `${(ms / 1_000).toFixed(1)} s` : humanDuration(ms / 1_000);
}
