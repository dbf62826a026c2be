// The log page `/logs`: reads files and shows their figures.

import { element, setText } from "../shared/page.js";
import { announce } from "./announcer.js";
import { type Offer, watchForFiles } from "./drop-zone.js";
import { totalSize } from "./file-chain.js";
import { listFollowable } from "./follow-list.js";
import { hideFormatForm, showFormatForm, watchFormatForm } from "./format-help.js";
import { watchKeyForm } from "./key.js";
import type { Ended, Source } from "./log-session.js";
import { LogView } from "./log-view.js";
import { RunningSession } from "./running-session.js";
import type { Summary } from "./summary.js";
import { explain, objection, type Trouble } from "./trouble.js";
import { isOutdated, isWhole, WHOLE } from "./view.js";

/** The state of the page, by which its style sheet shows and hides elements. */
type PageState = "idle" | "uploading" | "following" | "finished" | "cancelled" | "failed";

const outdated = isOutdated(location.hash);
const log = new LogView(() => session?.name ?? "log");
let session: RunningSession | undefined;
/** The files that were read last, for reading them again. */
let lastFiles: File[] = [];

watchForFiles(handleOffer);
watchKeyForm(() => listFollowable(follow));
watchFormatForm((format) => readFiles(lastFiles, format));
element("cancel").addEventListener("click", () => stopReading());
element("retry").addEventListener("click", () => readFiles(lastFiles, "auto"));
setState("idle");
showSharedView();
if (log.view.follow === null) {
  listFollowable(follow);
} else {
  follow(log.view.follow);
}
if (outdated) {
  showTrouble({
    title: "The filters in this link were not applied",
    detail:
      "The link was created by an earlier version of this page, with a different filter syntax. Set the filters again.",
    retry: false,
  });
}

function handleOffer(offer: Offer): void {
  if (document.body.dataset["state"] === "uploading") {
    announce("A log is being read. Cancel it first.");
    setText(element("busy"), "A log is being read. Cancel it first.");
    return;
  }
  const uploads = document.body.dataset["uploads"] ?? "allowed";
  if (uploads !== "allowed") {
    const detail = element("uploads-why").textContent ?? "";
    showTrouble({
      title: "The server does not accept a log from this page now",
      detail,
      retry: false,
    });
    return;
  }
  if (offer.kind === "unusable") {
    showTrouble({ title: "Nothing to read", detail: offer.why, retry: false });
    return;
  }
  const trouble = objection(offer.files);
  if (trouble !== null) {
    showTrouble(trouble);
    return;
  }
  if (session !== undefined) {
    // A view of another log does not apply to this one.
    log.change({ ...WHOLE });
  }
  readFiles(offer.files, "auto");
}

function readFiles(files: File[], format: string): void {
  lastFiles = files;
  const rows = (element("keep-lines") as HTMLInputElement).checked;
  open({ kind: "files", files, format, rows });
  setState("uploading");
  element("cancel").focus({ preventScroll: true });
}

function follow(name: string): void {
  log.change({ ...log.view, follow: name });
  open({ kind: "follow", name });
  setState("following");
}

function open(from: Source): void {
  session?.cancel();
  hideTrouble();
  const opened = new RunningSession(from, {
    snapshot: (summary, final) => handleSnapshot(opened, summary, final),
    answer: (answer) => {
      if (opened === session) {
        log.handleAnswer(answer);
      }
    },
    connection: (isConnected) => {
      document.body.dataset["connection"] = isConnected ? "open" : "lost";
    },
    ended: (ended) => {
      if (opened === session) {
        handleEnd(ended);
      }
    },
  });
  session = opened;
  setText(element("file-name"), opened.name);
  const size = from.kind === "files" && from.files.every(isPlain) ? totalSize(from.files) : 0;
  log.open(size, (question) => opened.ask(question));
}

function handleSnapshot(from: RunningSession, summary: Summary, final: boolean): void {
  if (from !== session) {
    return;
  }
  log.handleSnapshot(summary, final);
  if (final && document.body.dataset["state"] === "uploading") {
    const hadFocus = document.activeElement === element("cancel");
    announce(`Done: ${element("requests").textContent ?? ""} requests`);
    setState("finished");
    if (hadFocus) {
      element("choose-another").focus({ preventScroll: true }); // It replaces Cancel.
    }
  }
}

/** Stops reading; the figures of what was read stay, and can be filtered. */
function stopReading(): void {
  session?.stop();
  handleCancelled();
}

function handleCancelled(): void {
  const hadFocus = document.activeElement === element("cancel");
  announce("Cancelled");
  setState("cancelled");
  if (hadFocus) {
    element("choose-another").focus({ preventScroll: true });
  }
}

function handleEnd(ended: Ended): void {
  log.stop();
  const hadFocus = document.activeElement === element("cancel");
  switch (ended.kind) {
    case "forgotten":
      showTrouble({
        title: "The server no longer keeps this log",
        detail:
          "The figures stay on this page. To filter the log or to see its lines, read it again.",
        retry: lastFiles.length > 0,
      });
      return;
    case "cancelled":
      handleCancelled();
      return;
    case "failed": {
      const [first] = lastFiles;
      const size = totalSize(lastFiles);
      const trouble = explain(ended.failure, ended.acknowledged, {
        name: session?.name ?? "",
        size,
      });
      showTrouble(trouble);
      if (trouble.asksForFormat === true && first !== undefined) {
        void showFormatForm(first);
      }
      setState("failed");
      break;
    }
  }
  if (hadFocus) {
    element("choose-another").focus({ preventScroll: true });
  }
}

/** While there is no log, shows that the link contains a view. */
function showSharedView(): void {
  const carries = !isWhole(log.view) && log.view.follow === null;
  setText(
    element("shared-view"),
    carries ? "This link contains filters. They are applied once you choose the log." : "",
  );
}

function showTrouble({ title, detail, retry }: Trouble): void {
  setText(element("trouble-title"), title);
  setText(element("trouble-detail"), detail);
  element("retry").hidden = !retry;
  hideFormatForm();
  element("trouble").hidden = false;
  element("trouble").scrollIntoView({ block: "nearest" });
}

function hideTrouble(): void {
  element("trouble").hidden = true;
}

function setState(state: PageState): void {
  document.body.dataset["state"] = state;
  setText(element("busy"), "");
  document.title = state === "idle" ? "Logs · linerate" : `${session?.name ?? ""} · linerate`;
}

/** The size of the log in a compressed file is unknown. */
function isPlain({ name }: File): boolean {
  return !/\.(gz|zst|zstd)$/i.test(name);
}
