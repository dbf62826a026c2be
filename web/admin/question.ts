// A question before something is done that can't be taken back.

import { element, setText } from "../shared/page.js";

export interface Question {
  title: string;
  detail: string;
  /** What the button says that does it. */
  verb: string;
  /** A box to tick, if there is one. */
  option?: string;
}

/** Asks; returns whether the box was ticked, or `undefined` if the answer is no. */
export function ask(question: Question): Promise<boolean | undefined> {
  const dialog = element("question") as HTMLDialogElement;
  const box = element("question-option") as HTMLInputElement;
  setText(element("question-title"), question.title);
  setText(element("question-detail"), question.detail);
  setText(element("question-yes"), question.verb);
  setText(element("question-option-text"), question.option ?? "");
  element("question-option-row").hidden = question.option === undefined;
  box.checked = false;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    const answer = () => resolve(dialog.returnValue === "yes" ? box.checked : undefined);
    dialog.addEventListener("close", answer, { once: true });
  });
}
