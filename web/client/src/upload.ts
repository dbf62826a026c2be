// The module `linerate/upload`: files of any size to a server, in browsers and Node.js.

export type { Environment, WebSocketConstructor, WebSocketLike } from "./environment.js";
export { type FileMark, findMarked, marksOf } from "./upload/file-mark.js";
export {
  UploadError,
  type UploadEvents,
  type FileUpload,
  type UploadState,
} from "./upload/file-upload.js";
export { Uploader, type UploaderOptions } from "./upload/uploader.js";
