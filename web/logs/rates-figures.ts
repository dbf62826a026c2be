// Which clients exceed a limit of requests, as the server counts them.

import type { Fields } from "./fields.js";

/** What the requests are counted by. */
export type RateKey = "address" | "agent" | "asn" | "network";

/** A program whose rules can be written. */
export type RuleFormat = "caddy" | "haproxy" | "nftables" | "nginx";

/** A limit, and what the requests are counted by. */
export interface RateQuery {
  limit: { requests: number; seconds: number };
  by: RateKey;
  rules?: RuleFormat;
}

/** The effect of a limit. */
export interface RateEffect {
  /** The most requests that the limit allows. */
  allowed: number;
  /** The keys that exceed it. */
  keys: number;
  /** All their requests. */
  requests: number;
  /** Their requests over the limit. */
  over: number;
  /** How many of the keys look like people. */
  people: number;
  /** The requests over the limit of those. */
  people_over: number;
}

/** A key that exceeds the limit; times are in Unix seconds. */
export interface RateLimited {
  value: string;
  /** The name of an autonomous system, or empty. */
  name: string;
  requests: number;
  over: number;
  /** How often it exceeded the limit. */
  times: number;
  first: number;
  last: number;
  /** The most requests in a window, and the last second of that window. */
  peak: number;
  peak_at: number;
  looks_like_people: boolean;
}

export interface Rates {
  requests: number;
  without_key: number;
  keys: number;
  people: number;
  effect: RateEffect;
  limited: RateLimited[];
  curve: RateEffect[];
  /** Above 1, times are rounded down to multiples of this many seconds. */
  time_step_s: number;
  rules?: string;
}

export function parseRates(rates: Fields): Rates {
  return {
    requests: rates.count("requests"),
    without_key: rates.count("without_key"),
    keys: rates.count("keys"),
    people: rates.count("people"),
    effect: parseEffect(rates.object("effect")),
    limited: rates.objects("limited").map((it) => ({
      value: it.string("value"),
      name: it.string("name"),
      requests: it.count("requests"),
      over: it.count("over"),
      times: it.count("times"),
      first: it.time("first") ?? 0,
      last: it.time("last") ?? 0,
      peak: it.count("peak"),
      peak_at: it.time("peak_at") ?? 0,
      looks_like_people: it.flag("looks_like_people"),
    })),
    curve: rates.objects("curve").map(parseEffect),
    time_step_s: rates.count("time_step_s"),
    ...(rates.has("rules") && { rules: rates.string("rules") }),
  };
}

function parseEffect(effect: Fields): RateEffect {
  return {
    allowed: effect.count("allowed"),
    keys: effect.count("keys"),
    requests: effect.count("requests"),
    over: effect.count("over"),
    people: effect.count("people"),
    people_over: effect.count("people_over"),
  };
}
