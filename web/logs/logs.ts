// The log page `/logs`: reads files and shows their figures.

import { grouped, humanBytes } from "../shared/format.js";
import { element, setText } from "../shared/page.js";
import { announce } from "./announcer.js";
import { type Offer, watchForFiles } from "./drop-zone.js";
import { totalSize } from "../client/src/upload/file-chain.js";
import { findMarked, type FileMark, marksOf } from "../client/src/upload/file-mark.js";
import { listFollowable } from "./follow-list.js";
import { hideFormatForm, showFormatForm, watchFormatForm } from "./format-help.js";
import { watchKeyForm } from "./key.js";
import type { Ended, Source } from "./log-session.js";
import { LogView } from "./log-view.js";
import { forgetUpload, type OwnUpload, storedUpload, storeUpload } from "./own-uploads.js";
import { showArrived } from "./progress.js";
import type { Ready, UploadedFile } from "./protocol.js";
import { RunningSession } from "./running-session.js";
import type { Summary } from "./summary.js";
import { explain, gone, objection, otherFile, type Trouble } from "./trouble.js";
import { isOutdated, isWhole, type View, WHOLE } from "./view.js";

/** The state of the page, by which its style sheet shows and hides elements. */
type PageState =
  | "idle"
  | "opening"
  | "uploading"
  | "interrupted"
  | "watching"
  | "following"
  | "finished"
  | "cancelled"
  | "failed";

const outdated = isOutdated(location.hash);
const log = new LogView(() => session?.name ?? "log", handleAddress);
let session: RunningSession | undefined;
/** The files that were read last, for reading them again. */
let lastFiles: File[] = [];
/** What identifies these files after a reload. */
let lastMarks: Promise<FileMark[]> = Promise.resolve([]);
/** The secret of the upload that is shown, if this page has it. */
let ownId: string | undefined;
/** True if the next files that are chosen should continue the interrupted upload. */
let wantsSame = false;

watchForFiles(handleOffer);
watchKeyForm(() => listFollowable(follow, openShared));
watchFormatForm((format) => readFiles(lastFiles, format));
element("cancel").addEventListener("click", () => stopReading());
element("continue-upload").addEventListener("click", () => {
  wantsSame = true;
});
element("choose-another").addEventListener("click", () => {
  wantsSame = false;
});
element("discard").addEventListener("click", () => discard());
element("end-upload").addEventListener("click", () => endInterrupted());
element("retry").addEventListener("click", () => readFiles(lastFiles, "auto"));
setState("idle");
showSharedView();
if (log.view.follow === null) {
  listFollowable(follow, openShared);
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
  if (document.body.dataset["state"] === "interrupted") {
    void continueWith(offer.files);
  } else {
    readOthers(offer.files);
  }
}

/** Reads files that have nothing to do with the log that is shown, if there is one. */
function readOthers(files: File[]): void {
  if (session !== undefined) {
    // A view of another log does not apply to this one.
    log.change({ ...WHOLE });
  }
  readFiles(files, "auto");
}

/** Continues the interrupted upload if these are its files. */
async function continueWith(files: File[]): Promise<void> {
  const own = ownUpload();
  if (own === undefined) {
    readOthers(files);
    return;
  }
  try {
    const found = await findMarked(files, own.marks);
    if (Array.isArray(found)) {
      lastFiles = found;
      lastMarks = Promise.resolve(own.marks);
      open({ kind: "files", files: found, format: "auto", rows: true, resume: own.id });
      setState("uploading");
      element("cancel").focus({ preventScroll: true });
    } else if (wantsSame) {
      showTrouble(otherFile(found.missing));
    } else {
      readOthers(files);
    }
  } catch {
    showTrouble(explain({ reason: "unreadable" }, 0, { name: "", size: totalSize(files) }));
  }
}

/** Ends the interrupted upload, so that the figures of what has arrived are final. */
function endInterrupted(): void {
  const own = ownUpload();
  if (own !== undefined) {
    open({ kind: "end", id: own.id });
    setState("opening");
  }
}

/** Returns the upload that is shown, if this tab began it and it is not complete. */
function ownUpload(): OwnUpload | undefined {
  const own = log.view.log === null ? undefined : storedUpload(log.view.log);
  return own?.isComplete === false ? own : undefined;
}

/** Shows the log that the address names, unless another one is shown. */
function openShared(): void {
  if (log.view.log !== null && session === undefined) {
    openNamed(log.view.log);
  }
}

/** Shows an upload: as its owner if this tab has completed it, or else as a viewer. */
function openNamed(name: string): void {
  const own = storedUpload(name);
  open(own?.isComplete === true ? { kind: "end", id: own.id } : { kind: "view", name });
  setState("opening");
}

function readFiles(files: File[], format: string): void {
  lastFiles = files;
  lastMarks = marksOf(files);
  // A file that cannot be read is reported by the session.
  lastMarks.catch(() => undefined);
  const rows = (element("keep-lines") as HTMLInputElement).checked;
  open({ kind: "files", files, format, rows });
  setState("uploading");
  element("cancel").focus({ preventScroll: true });
}

function follow(name: string): void {
  log.change({ ...log.view, follow: name, log: null });
  open({ kind: "follow", name });
  setState("following");
}

function open(from: Source): void {
  session?.leave();
  showOwned(undefined);
  hideTrouble();
  const opened = new RunningSession(from, {
    snapshot: (summary, final) => handleSnapshot(opened, summary, final),
    answer: (answer) => {
      if (opened === session) {
        log.handleAnswer(answer);
      }
    },
    ready: (ready) => {
      if (opened === session) {
        handleReady(from, ready);
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

function handleReady(from: Source, ready: Ready): void {
  setText(element("file-name"), session?.name ?? "");
  document.title = `${session?.name ?? ""} · linerate`;
  const name = ready.view;
  if (name === undefined) {
    return;
  }
  if (name !== log.view.log) {
    log.replace({ ...log.view, log: name });
  }
  if (from.kind !== "view") {
    showOwned(ready.id);
  }
  if (from.kind === "files") {
    void lastMarks.then(
      (marks) => {
        if (ownId === ready.id && document.body.dataset["state"] === "uploading") {
          storeUpload(name, { id: ready.id, marks, isComplete: false });
        }
      },
      () => undefined,
    );
  } else if (ready.files !== undefined) {
    showArrivedPart(ready.bytes, ready.files);
  }
}

/** Offers what only the owner of an upload may do; `id` is its secret, if this page has it. */
function showOwned(id: string | undefined): void {
  ownId = id;
  document.body.dataset["owner"] = id === undefined ? "no" : "yes";
}

/** Deletes the log from the server. */
function discard(): void {
  session?.discard();
  session = undefined;
  log.close();
  if (log.view.log !== null) {
    forgetUpload(log.view.log);
  }
  hideTrouble();
  setState("idle");
  log.replace({ ...WHOLE });
  showSharedView();
  announce("The log was deleted from the server");
  element("choose").focus({ preventScroll: true });
}

/** Shows how much of an upload has arrived, and what is missing if it was interrupted. */
function showArrivedPart(bytes: number, files: readonly UploadedFile[]): void {
  const size = files.reduce((sum, file) => sum + (file.size ?? 0), 0);
  showArrived(bytes, Math.max(size, bytes));
  const missing = `${humanBytes(size - bytes)} of ${humanBytes(size)} are missing`;
  const what = files.length === 1 ? "the same file" : `the same ${grouped(files.length)} files`;
  setText(
    element("interrupted-detail"),
    `The page was closed or loaded again during the upload, so ${missing}. Choose ${what} again to continue where it stopped. The figures below cover what has arrived.`,
  );
}

function handleSnapshot(from: RunningSession, summary: Summary, final: boolean): void {
  if (from !== session) {
    return;
  }
  log.handleSnapshot(summary, final);
  const state = document.body.dataset["state"];
  if (!final && state === "opening") {
    setState(ownUpload() === undefined ? "watching" : "interrupted");
  }
  if (final && log.view.log !== null && ownId !== undefined) {
    storeUpload(log.view.log, { id: ownId, marks: [], isComplete: true });
  }
  if (final && state !== "finished" && state !== "cancelled") {
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
      log.replace({ ...log.view, log: null });
      showTrouble({
        title: "The server no longer keeps this log",
        detail:
          "The figures stay on this page. To filter the log or to see its lines, read it again.",
        retry: lastFiles.length > 0,
      });
      return;
    case "gone":
      session = undefined;
      log.close();
      setState("idle");
      log.replace({ ...log.view, log: null });
      showSharedView();
      showTrouble(gone(ended.keptSeconds));
      return;
    case "taken":
      if (log.view.log !== null) {
        open({ kind: "view", name: log.view.log });
        setState("opening");
      }
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
      if (session?.source.kind === "files") {
        log.replace({ ...log.view, log: null });
      }
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

/** Shows the view of an address that the user went to. */
function handleAddress(next: View): void {
  if (next.log === null || next.log === log.view.log) {
    log.show({ ...next, log: log.view.log });
    return;
  }
  log.show(next);
  openNamed(next.log);
}

/** While there is no log, shows that the link contains a view. */
function showSharedView(): void {
  const carries = !isWhole(log.view) && log.view.follow === null && log.view.log === null;
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
