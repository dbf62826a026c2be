// The search of the book: an index over its headings, made when the search field gets the focus.

import MiniSearch from "minisearch";
import { create, element, setText } from "../shared/page.js";

interface Section {
  url: string;
  page: string;
  title: string;
  text: string;
}

const RESULTS_MAX = 12;
const EXCERPT_CHARACTERS = 140;

const book = document.body.dataset["book"] ?? ".";
const form = element("search");
const input = element("search-input") as HTMLInputElement;
const results = element("search-results");
const state = element("search-state");

let index: Promise<MiniSearch<Section>> | undefined;

form.hidden = false;
form.addEventListener("submit", (event) => {
  event.preventDefault();
  results.querySelector("a")?.click();
});
input.addEventListener("focus", () => void load());
input.addEventListener("input", () => void search());
form.addEventListener("keydown", moveThroughResults);
document.addEventListener("keydown", focusOnSlash);
document.addEventListener("click", (event) => {
  if (event.target instanceof Node && !form.contains(event.target)) {
    results.hidden = true;
  }
});

const contents = document.querySelector<HTMLElement>("#contents");
const current = contents?.querySelector<HTMLElement>('[aria-current="page"]');
if (contents && current) {
  contents.scrollTop = current.offsetTop - contents.clientHeight / 2;
}

function load(): Promise<MiniSearch<Section>> {
  index ??= fetchIndex().catch((error: unknown) => {
    index = undefined;
    setText(state, "The search index cannot be loaded.");
    throw error;
  });
  return index;
}

async function fetchIndex(): Promise<MiniSearch<Section>> {
  const response = await fetch(`${book}/search.json`);
  const sections = (await response.json()) as Section[];
  const made = new MiniSearch<Section>({
    idField: "url",
    fields: ["title", "page", "text"],
    storeFields: ["page", "title", "text"],
    searchOptions: { boost: { title: 6, page: 3 }, combineWith: "AND", prefix: true, fuzzy: 0.15 },
  });
  made.addAll(sections);
  return made;
}

async function search(): Promise<void> {
  const query = input.value.trim();
  const searched = await load();
  if (query !== input.value.trim()) {
    return; // Something else has been typed meanwhile.
  }
  const found = searched.search(query).slice(0, RESULTS_MAX);
  results.replaceChildren(
    ...found.map((hit) =>
      resultItem(
        { url: hit.id as string, page: hit["page"], title: hit["title"], text: hit["text"] },
        hit.terms,
      ),
    ),
  );
  if (found.length === 0 && query !== "") {
    results.append(create("li", "note", "Nothing found."));
  }
  results.hidden = query === "";
  setText(state, query === "" ? "" : `${found.length} results`);
}

function resultItem(section: Section, terms: string[]): HTMLLIElement {
  const item = create("li");
  const link = create("a");
  link.href = `${book}/${section.url}`;
  const heading =
    section.title === section.page ? section.title : `${section.page} › ${section.title}`;
  link.append(create("strong", "", heading), create("span", "note", excerpt(section.text, terms)));
  link.addEventListener("click", () => (results.hidden = true));
  item.append(link);
  return item;
}

/** Returns the part of a text in which the first of the terms occurs. */
function excerpt(text: string, terms: string[]): string {
  const lower = text.toLowerCase();
  const places = terms.map((term) => lower.indexOf(term)).filter((place) => place >= 0);
  const place = Math.min(...places, text.length);
  const start = place === text.length ? 0 : Math.max(0, text.lastIndexOf(" ", place - 40) + 1);
  const part = text.slice(start, start + EXCERPT_CHARACTERS);
  return `${start > 0 ? "… " : ""}${part}${start + EXCERPT_CHARACTERS < text.length ? " …" : ""}`;
}

function moveThroughResults(event: KeyboardEvent): void {
  if (event.key === "Escape") {
    results.hidden = true;
    input.focus();
    return;
  }
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined || results.hidden) {
    return;
  }
  const stops = [input, ...results.querySelectorAll("a")];
  const now = stops.findIndex((stop) => stop === document.activeElement);
  stops[Math.min(Math.max(now + step, 0), stops.length - 1)]?.focus();
  event.preventDefault();
}

function focusOnSlash(event: KeyboardEvent): void {
  const isTyping = event.target instanceof HTMLElement && event.target.closest("input") !== null;
  if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    input.focus();
  }
}
