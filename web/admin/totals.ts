// The figures of the node that serves this page.

import { compact, grouped, humanBytes, humanDuration } from "../shared/format.js";
import { element, setFigure, setText } from "../shared/page.js";
import type { Overview } from "./views.js";

export function showTotals(overview: Overview): void {
  const { node } = overview;
  setText(element("node-name"), node.name);
  const uptime = humanDuration(node.uptime_s);
  setText(element("node-note"), `version ${node.version}, up for ${uptime}, id ${node.id}`);
  setFigure(element("clients"), grouped(node.clients), node.clients);
  setText(element("users"), counted(node.users, "user"));
  setFigure(element("subscriptions"), grouped(node.subscriptions), node.subscriptions);
  setText(element("channels"), `to ${counted(node.channels, "channel")}`);
  const { publications_per_s: arriving, deliveries_per_s: leaving } = overview;
  setFigure(element("publications-rate"), compact(Math.round(arriving)), arriving);
  setText(
    element("publications-bytes"),
    `${humanBytes(overview.publication_bytes_per_s)} per second`,
  );
  setFigure(element("deliveries-rate"), compact(Math.round(leaving)), leaving);
  setText(element("deliveries-bytes"), `${humanBytes(overview.delivery_bytes_per_s)} per second`);
  setFigure(element("dropped"), compact(overview.dropped), overview.dropped);
  setText(element("conflated"), `${compact(overview.conflated)} conflated`);
  setFigure(element("waiting"), compact(overview.waiting), overview.waiting);
  document.body.dataset["draining"] = String(overview.is_draining);
}

function counted(count: number, noun: string): string {
  return `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;
}
