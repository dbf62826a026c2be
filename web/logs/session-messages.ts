// Messages between the page and the worker that talks to the server.

import type { ReaderKind } from "../client/src/upload/file-reader.js";
import type { Ended, Source } from "./log-session.js";
import type { Answer, Question, Ready } from "./protocol.js";
import type { Summary } from "./summary.js";

export type ToWorker =
  | { type: "open"; source: Source; url: string; key: string; reader?: ReaderKind }
  | { type: "ask"; question: Question }
  | { type: "stop" }
  | { type: "leave" }
  | { type: "discard" };

export type FromWorker =
  | { type: "progress"; acknowledged: number }
  | { type: "snapshot"; summary: Summary; final: boolean }
  | { type: "answer"; answer: Answer }
  | { type: "connected"; ready: Ready }
  | { type: "reconnecting" }
  | { type: "reading"; kind: ReaderKind }
  | { type: "ended"; ended: Ended };
