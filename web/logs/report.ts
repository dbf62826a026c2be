// A report of `linerate logs --html`: the log page with one log, which is in the page itself.

import { create, element, setText } from "../shared/page.js";
import { LogView } from "./log-view.js";
import type { Question } from "./protocol.js";
import { ReportEngine } from "./report-engine.js";
import { noteOn, parseReport, unpacked } from "./report-file.js";

void open();

async function open(): Promise<void> {
  const report = parseReport(await unpacked(element("report").textContent ?? ""));
  const log = new LogView(() => report.name);
  let engine: Promise<ReportEngine> | undefined;
  // The whole log is shown without the engine, which takes longer to start.
  const answer = async (question: Question): Promise<void> => {
    const { seq, type } = question;
    if (type === "rows") {
      const message = "a report does not have the lines of the log";
      log.handleAnswer({ type: "refused", seq, code: "rows_not_kept", message });
      return;
    }
    engine ??= unpacked(element("engine").textContent ?? "").then((program) =>
      ReportEngine.open(program, report.packed, report.summary),
    );
    try {
      const answered = (await engine).answer(question);
      if (answered !== undefined) {
        log.handleAnswer(answered);
      }
    } catch (error) {
      const message = `the report is damaged: ${String(error)}`;
      log.handleAnswer({ type: "refused", seq, code: "damaged", message });
    }
  };
  // After the page has shown that it is filtering.
  log.open(0, (question) => setTimeout(() => void answer(question)));
  hideLines();
  setText(element("file-name"), report.name);
  const note = create("span", "", noteOn(report.detail));
  note.dataset["testid"] = "note";
  element("format").after(note);
  document.title = `${report.name} · linerate`;
  document.body.dataset["state"] = "finished";
  log.handleSnapshot(report.summary, true);
}

function hideLines(): void {
  const section = element("lines").closest("section");
  if (section !== null) {
    section.hidden = true;
  }
}
