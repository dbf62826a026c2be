// The panel of limits: which clients exceed one, whom other limits would hit, and rules for
// servers and firewalls.

import { counted, grouped, percentage, utcClock, utcDay } from "../shared/format.js";
import { create, element, setText } from "../shared/page.js";
import { announce } from "./announcer.js";
import { saveText } from "./downloads.js";
import type { SideQuestion } from "./enquiry.js";
import type { Figures } from "./figures-view.js";
import type { Answer } from "./protocol.js";
import { curveEnds, drawCurve } from "./rates-chart.js";
import type {
  RateEffect,
  RateKey,
  RateLimited,
  RateQuery,
  Rates,
  RuleFormat,
} from "./rates-figures.js";
import { type SidePanel, StandingQuestion } from "./standing-question.js";
import type { Choose } from "./value-table.js";
import { queryOf, type View } from "./view.js";
import { visible } from "./visible.js";

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

export interface RatesEvents {
  ask(question: SideQuestion | null): void;
  /** A value was clicked. */
  choose: Choose;
}

export class RatesPanel implements SidePanel {
  readonly #choose: Choose;
  readonly #question: StandingQuestion;
  readonly #requests = element("rates-requests") as HTMLInputElement;
  readonly #seconds = element("rates-seconds") as HTMLInputElement;
  readonly #by = element("rates-by") as HTMLSelectElement;
  readonly #program = element("rates-program") as HTMLSelectElement;
  #view: View | undefined;
  #figures: Figures | undefined;
  /** The limit whose effect is shown or awaited. */
  #asked: RateQuery | undefined;
  #rules = "";

  constructor({ ask, choose }: RatesEvents) {
    this.#question = new StandingQuestion(ask);
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

  /** Another view was chosen. */
  showView(view: View): void {
    this.#view = view;
    this.#ask();
  }

  /** Figures of the view have arrived. */
  handleFigures(figures: Figures): void {
    this.#figures = figures;
    this.#ask();
  }

  show(answer: Answer): void {
    if (answer.type === "rates" && this.#asked !== undefined) {
      this.#show(answer.rates, this.#asked);
    }
  }

  showProgress(fraction: number): void {
    this.#tell(`Counting … ${Math.floor(100 * fraction)} %`);
  }

  refuse(why: string): void {
    this.#tell(why);
    this.#showRules("");
    element("rates-result").hidden = true;
  }

  clear(): void {
    this.#figures = undefined;
    this.#asked = undefined;
    this.#question.want(null, 0, false);
    this.refuse("");
  }

  /** Counts by what is entered. */
  #count(): void {
    const form = element("rates-form") as HTMLFormElement;
    if (this.#figures === undefined || !form.reportValidity()) {
      return;
    }
    const limit = {
      requests: this.#requests.valueAsNumber,
      seconds: this.#seconds.valueAsNumber,
    };
    const by = this.#by.value as RateKey;
    const program = this.#program.value as RuleFormat | "";
    this.#asked = program === "" ? { limit, by } : { limit, by, rules: program };
    this.#ask();
  }

  #ask(): void {
    const [figures, rates] = [this.#figures, this.#asked];
    if (figures === undefined || rates === undefined || this.#view === undefined) {
      return;
    }
    const top_max = rates.rules === undefined ? LISTED_MAX : RULES_MAX;
    const query = { ...queryOf(this.#view), top_max };
    const question: SideQuestion = { type: "rates", query, rates };
    if (this.#question.want(question, figures.whole.requests, figures.isFinal)) {
      this.#tell("Counting …");
    }
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
