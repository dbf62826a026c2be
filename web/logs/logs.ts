// The log page `/logs`: a file comes in, figures come out, one upload at a time.

import { ownServer } from "../shared/live-socket.js";
import { element, setText } from "../shared/page.js";
import { type Offer, watchForFiles } from "./drop-zone.js";
import type { ReaderKind } from "./file-reader.js";
import { announce, Progress } from "./progress.js";
import type { Summary } from "./protocol.js";
import { RequestsChart } from "./requests-chart.js";
import { clearStatuses, showStatuses } from "./statuses.js";
import { clearTopPaths, showTopPaths } from "./top-paths.js";
import { clearTotals, showTotals } from "./totals.js";
import { explain, objection, type Trouble } from "./trouble.js";
import { clearUnparsedLines, showUnparsedLines } from "./unparsed-lines.js";
import type { Failure, Outcome } from "./upload.js";
import type { FromWorker, ToWorker } from "./upload-messages.js";

/** What the page is doing; its style sheet shows and hides by it. */
type PageState = "idle" | "uploading" | "finished" | "cancelled" | "failed";

const chart = new RequestsChart();
let running: RunningUpload | undefined;
let lastFile: File | undefined;

watchForFiles(handleOffer);
element("cancel").addEventListener("click", () => running?.cancel());
element("retry").addEventListener("click", () => {
  if (lastFile !== undefined) {
    start(lastFile);
  }
});
setState("idle");

function handleOffer(offer: Offer): void {
  if (running !== undefined) {
    announce("A file is being read. Cancel it first.");
    setText(element("busy"), "One file at a time: cancel this one first.");
    return;
  }
  if (offer.kind === "unusable") {
    showTrouble({ title: "Nothing to read", detail: offer.why, retry: false });
    return;
  }
  const trouble = objection(offer.file);
  if (trouble !== null) {
    showTrouble(trouble);
    return;
  }
  start(offer.file);
}

function start(file: File): void {
  lastFile = file;
  hideTrouble();
  clearFigures();
  setState("uploading");
  running = new RunningUpload(file);
  element("cancel").focus({ preventScroll: true });
}

/** One upload as the page sees it: the worker's reports, drawn once a frame. */
class RunningUpload {
  readonly #file: File;
  readonly #progress: Progress;
  readonly #worker = new Worker("/assets/upload-worker.js", { type: "module" });
  #acknowledged = 0;
  #summary: Summary | undefined;
  #frame: number | undefined;

  constructor(file: File) {
    this.#file = file;
    this.#progress = new Progress(file);
    this.#worker.addEventListener("message", ({ data }) => this.#handle(data as FromWorker));
    this.#worker.addEventListener("error", (event) => this.#handleWorkerError(event));
    const reader = wantedReader();
    const url = ownServer("/logs/upload");
    this.#tell({ type: "start", file, url, ...(reader === undefined ? {} : { reader }) });
  }

  cancel(): void {
    this.#tell({ type: "cancel" });
  }

  #tell(message: ToWorker): void {
    this.#worker.postMessage(message);
  }

  #handle(message: FromWorker): void {
    switch (message.type) {
      case "progress":
        this.#acknowledged = message.acknowledged;
        break;
      case "snapshot":
        this.#summary = message.summary;
        break;
      case "reading":
        element("progress").dataset["reader"] = message.kind;
        return;
      case "ended":
        this.#draw();
        this.#end(message.outcome);
        return;
    }
    this.#frame ??= requestAnimationFrame(() => this.#draw());
  }

  /** A worker that couldn't be loaded has no message to tell; one that threw has. */
  #handleWorkerError({ message }: ErrorEvent): void {
    const failure: Failure =
      message === undefined ? { reason: "unreachable" } : { reason: "bug", message };
    this.#worker.terminate();
    this.#end({ kind: "failed", failure, acknowledged: this.#acknowledged });
  }

  #draw(): void {
    if (this.#frame !== undefined) {
      cancelAnimationFrame(this.#frame);
      this.#frame = undefined;
    }
    this.#progress.handleProgress(this.#acknowledged);
    if (this.#summary !== undefined) {
      showFigures(this.#summary, this.#summary.bytes_read / this.#file.size);
      this.#summary = undefined;
    }
  }

  #end(outcome: Outcome): void {
    running = undefined;
    chart.finish();
    const hadFocus = document.activeElement === element("cancel");
    switch (outcome.kind) {
      case "finished":
        this.#progress.end("read in");
        announce(`Done: ${element("requests").textContent ?? ""} requests`);
        setState("finished");
        break;
      case "cancelled":
        this.#progress.end("cancelled after");
        announce("Cancelled");
        setState("cancelled");
        break;
      case "failed":
        this.#progress.end("stopped after");
        showTrouble(explain(outcome.failure, outcome.acknowledged, this.#file));
        setState("failed");
        break;
    }
    if (hadFocus) {
      element("choose-another").focus({ preventScroll: true }); // It stands where Cancel stood.
    }
  }
}

function showFigures(summary: Summary, fraction: number): void {
  document.body.dataset["figures"] = "some";
  showTotals(summary);
  chart.show(summary, fraction);
  showStatuses(summary);
  showTopPaths(summary);
  showUnparsedLines(summary);
}

function clearFigures(): void {
  document.body.dataset["figures"] = "none";
  clearTotals();
  chart.clear();
  clearStatuses();
  clearTopPaths();
  clearUnparsedLines();
}

function showTrouble({ title, detail, retry }: Trouble): void {
  setText(element("trouble-title"), title);
  setText(element("trouble-detail"), detail);
  element("retry").hidden = !retry;
  element("trouble").hidden = false;
}

function hideTrouble(): void {
  element("trouble").hidden = true;
}

function setState(state: PageState): void {
  document.body.dataset["state"] = state;
  setText(element("busy"), "");
  const name = lastFile?.name ?? "";
  document.title = state === "idle" ? "Logs · linerate" : `${name} · linerate`;
}

/** `/logs?reader=slices` and `?reader=stream` skip the choice, to measure each. */
function wantedReader(): ReaderKind | undefined {
  const wanted = new URLSearchParams(location.search).get("reader");
  return wanted === "slices" || wanted === "stream" ? wanted : undefined;
}
