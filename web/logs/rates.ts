// The panel of limits: which clients exceed one, whom other limits would hit, and rules for
// servers and firewalls.

import { counted, grouped, percentage, utcClock, utcDay } from "../shared/format.js";
import { create, element, setText } from "../shared/page.js";
import { announce } from "./announcer.js";
import { saveText } from "./downloads.js";
import type { Answer, Question } from "./protocol.js";
import type { Choice, Query } from "./query.js";
import { curveEnds, drawCurve } from "./rates-chart.js";
import type {
  RateEffect,
  RateKey,
  RateLimited,
  RateQuery,
  Rates,
  RuleFormat,
} from "./rates-figures.js";
import { visible } from "./visible.js";

/** Questions of this panel are numbered apart from all others of the page. */
const FIRST_SEQ = 1_000_000_000;
/** The most keys that are listed, and the most that are in rules. */
const LISTED_MAX = 50;
const RULES_MAX = 1_000;

const NAMES: Record<RateKey, [string, string]> = {
  address: ["address", "addresses"],
  agent: ["user agent", "user agents"],
  asn: ["autonomous system", "autonomous systems"],
  network: ["network", "networks"],
};

const FILES: Record<RuleFormat, string> = {
  caddy: "linerate.caddy",
  haproxy: "linerate-haproxy.cfg",
  nftables: "linerate.nft",
  nginx: "linerate-nginx.conf",
};

export class RatesPanel {
  readonly #choose: (choice: Choice) => void;
  readonly #requests = element("rates-requests") as HTMLInputElement;
  readonly #seconds = element("rates-seconds") as HTMLInputElement;
  readonly #by = element("rates-by") as HTMLSelectElement;
  readonly #program = element("rates-program") as HTMLSelectElement;
  #ask: ((question: Question) => void) | undefined;
  #query: Query | undefined;
  /** The question whose answer is awaited or shown. */
  #asked: { seq: number; rates: RateQuery } | undefined;
  #isAwaited = false;
  #seq = FIRST_SEQ;
  #rules = "";

  /** `choose` is called to show only the requests of a value. */
  constructor(choose: (choice: Choice) => void) {
    this.#choose = choose;
    element("rates-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#count();
    });
    this.#program.addEventListener("change", () => this.#count());
    element("rates-copy").addEventListener("click", () => void this.#copy());
    element("rates-save").addEventListener("click", () => {
      saveText(this.#rules, FILES[this.#program.value as RuleFormat]);
    });
    this.clear();
  }

  /** Begins with another log, whose requests `query` selects. */
  open(query: Query, ask: (question: Question) => void): void {
    this.clear();
    this.#query = query;
    this.#ask = ask;
  }

  /** Counts other requests, if any were counted before. */
  handleQuery(query: Query): void {
    const isSame = JSON.stringify(query) === JSON.stringify(this.#query);
    this.#query = query;
    if (this.#asked !== undefined && !isSame) {
      this.#count();
    }
  }

  /** Shows an answer; returns whether it was to a question of this panel. */
  handleAnswer(answer: Answer): boolean {
    if (answer.seq < FIRST_SEQ) {
      return false;
    }
    if (answer.seq === this.#asked?.seq) {
      if (answer.type === "rates") {
        this.#show(answer.rates, this.#asked.rates);
      } else if (answer.type === "refused") {
        this.#refuse(answer.message);
      } else if (answer.type === "searching") {
        this.#tell(`Counting … ${Math.floor(100 * answer.fraction)} %`);
      }
      this.#isAwaited &&= answer.type === "searching";
    }
    return true;
  }

  clear(): void {
    this.#ask = undefined;
    this.#asked = undefined;
    this.#isAwaited = false;
    this.#tell("");
    this.#showRules("");
    element("rates-result").hidden = true;
  }

  #count(): void {
    const limit = {
      requests: this.#requests.valueAsNumber,
      seconds: this.#seconds.valueAsNumber,
    };
    const form = element("rates-form") as HTMLFormElement;
    if (this.#ask === undefined || this.#query === undefined || !form.reportValidity()) {
      return;
    }
    if (this.#asked !== undefined && this.#isAwaited) {
      this.#ask({ type: "drop", seq: this.#asked.seq });
    }
    const program = this.#program.value as RuleFormat | "";
    const by = this.#by.value as RateKey;
    const rates = program === "" ? { limit, by } : { limit, by, rules: program };
    this.#seq += 1;
    this.#asked = { seq: this.#seq, rates };
    this.#isAwaited = true;
    this.#tell("Counting …");
    const top_max = program === "" ? LISTED_MAX : RULES_MAX;
    this.#ask({ type: "rates", seq: this.#seq, query: { ...this.#query, top_max }, rates });
  }

  #show(rates: Rates, { limit, by }: RateQuery): void {
    const [one, many] = NAMES[by];
    const { effect } = rates;
    const whom = effect.keys === 1 ? `1 ${one} exceeds` : `${grouped(effect.keys)} ${many} exceed`;
    const people = effect.people === 0 ? "none looks" : `${grouped(effect.people)} of them look`;
    const without =
      rates.without_key === 0
        ? ""
        : ` ${counted(rates.without_key, "request")} without ${one} not counted.`;
    const step =
      rates.time_step_s > 1
        ? ` Times in this report are rounded to ${grouped(rates.time_step_s)} s, so this is approximate.`
        : "";
    this.#tell(
      effect.keys === 0
        ? `No ${one} of ${grouped(rates.keys)} exceeds ${counted(limit.requests, "request")} in ${grouped(limit.seconds)} s.${without}${step}`
        : `${whom} ${counted(limit.requests, "request")} in ${grouped(limit.seconds)} s, of ${grouped(rates.keys)}; ${people} like people. ` +
            `${counted(effect.over, "request")} over the limit, ${percentage(effect.over, effect.requests)} of all that these clients sent.${without}${step}`,
    );
    element("rates-result").hidden = false;
    setText(element("rates-key"), one.charAt(0).toUpperCase() + one.slice(1));
    element("rates-limited").replaceChildren(
      ...rates.limited.slice(0, LISTED_MAX).map((limited) => this.#row(limited, by)),
    );
    element("rates-limited-scroll").hidden = rates.limited.length === 0;
    this.#showCurve(rates.curve, limit.requests, many);
    this.#showRules(rates.rules ?? "");
  }

  #row(limited: RateLimited, by: RateKey): HTMLElement {
    const row = create("tr");
    const head = create("th", "rates-value");
    head.scope = "row";
    const text = visible(limited.value);
    if (by === "asn") {
      head.append(text);
    } else {
      const button = create("button", "rates-only", text);
      button.type = "button";
      button.title = "Show only its requests";
      const field = by === "agent" ? "agent" : "address";
      button.addEventListener("click", () => {
        this.#choose({ field, value: limited.value, exclude: false });
      });
      head.append(button);
    }
    if (limited.name !== "") {
      head.append(create("span", "note", ` ${visible(limited.name)}`));
    }
    const most = create("td", "", grouped(limited.peak));
    most.title = `up to ${moment(limited.peak_at)}`;
    const cells = [limited.over, limited.requests, limited.times].map((count) =>
      create("td", "", grouped(count)),
    );
    row.append(
      head,
      ...cells,
      most,
      create("td", "", `${moment(limited.first)} – ${momentAfter(limited.first, limited.last)}`),
      create("td", "", limited.looks_like_people ? "yes" : "no"),
    );
    return row;
  }

  #showCurve(curve: readonly RateEffect[], chosen: number, many: string): void {
    const picture = element("rates-curve").querySelector("svg");
    if (picture !== null) {
      drawCurve(picture, curve, chosen);
    }
    const [least, most, keys] = curveEnds(curve);
    setText(element("rates-least"), `${least} allowed`);
    setText(element("rates-most"), `${most} allowed`);
    setText(element("rates-keys"), `up to ${keys} ${many}, on a logarithmic scale`);
    element("rates-effects").replaceChildren(
      ...curve.map((effect) => this.#effect(effect, effect.allowed === chosen)),
    );
  }

  #effect(effect: RateEffect, isChosen: boolean): HTMLElement {
    const row = create("tr", isChosen ? "rates-chosen" : "");
    const head = create("th");
    head.scope = "row";
    const button = create("button", "rates-only", grouped(effect.allowed));
    button.type = "button";
    button.title = "Use this limit";
    if (isChosen) {
      button.setAttribute("aria-current", "true");
    }
    button.addEventListener("click", () => {
      this.#requests.value = String(effect.allowed);
      this.#count();
      this.#requests.focus();
    });
    head.append(button);
    const { keys, people, over, requests, people_over } = effect;
    row.append(
      head,
      ...[grouped(keys), grouped(people), grouped(over), percentage(over, requests)].map((text) =>
        create("td", "", text),
      ),
      create("td", "", grouped(people_over)),
    );
    return row;
  }

  #showRules(rules: string): void {
    this.#rules = rules;
    setText(element("rates-rules"), rules);
    element("rates-rules-place").hidden = rules === "";
  }

  #refuse(message: string): void {
    const text = message.charAt(0).toUpperCase() + message.slice(1);
    this.#tell(`${text}.`);
    this.#showRules("");
    element("rates-result").hidden = true;
  }

  #tell(text: string): void {
    setText(element("rates-status"), text);
  }

  async #copy(): Promise<void> {
    // Pages without TLS have no clipboard.
    const written: Promise<void> | undefined = navigator.clipboard?.writeText(this.#rules);
    const done = await (written ?? Promise.reject()).then(
      () => true,
      () => false,
    );
    announce(done ? "Rules copied" : "Cannot copy; save the rules instead");
    setText(element("rates-copy"), done ? "Copied" : "Cannot copy");
    setTimeout(() => setText(element("rates-copy"), "Copy"), 2_000);
  }
}

function moment(time: number): string {
  return `${utcDay(time)} ${utcClock(time, true)}`;
}

/** Formats a time after another one, without the day if that is the same. */
function momentAfter(first: number, last: number): string {
  return utcDay(first) === utcDay(last) ? utcClock(last, true) : moment(last);
}
