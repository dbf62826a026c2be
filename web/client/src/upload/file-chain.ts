// Several files as one sequence of bytes, each read in the way that the calibration chose.

import type { Calibration } from "./calibration.js";
import {
  type FileReader,
  ReadStalled,
  type ReaderKind,
  SliceReader,
  StreamReader,
} from "./file-reader.js";

/** Reads the files one after the other; offsets count from the start of the first. */
export class FileChain {
  readonly size: number;
  readonly #files: readonly Blob[];
  readonly #calibration: Calibration;
  readonly #reading: (kind: ReaderKind) => void;
  #reader: FileReader | undefined;
  #kind: ReaderKind | undefined;
  #file: Blob | undefined;

  /** `reading` is called whenever a way of reading is chosen. */
  constructor(
    files: readonly Blob[],
    calibration: Calibration,
    reading: (kind: ReaderKind) => void,
  ) {
    this.size = totalSize(files);
    this.#files = files;
    this.#calibration = calibration;
    this.#reading = reading;
  }

  /** How many bytes to read at `offset`, and the number of bytes in flight that is fastest. */
  paceAt(offset: number): { chunkBytes: number; inFlightBytes: number } {
    const { file, start } = this.#fileAt(offset);
    const { chunkBytes, inFlightBytes } = this.#readerAt(offset);
    return { chunkBytes: Math.min(chunkBytes, start + file.size - offset), inFlightBytes };
  }

  /** Returns the bytes from `offset` on, at least one and at most `bytesMax`. */
  async next(offset: number, bytesMax: number): Promise<Blob | Uint8Array<ArrayBuffer>> {
    try {
      return await this.#readerAt(offset).next(bytesMax);
    } catch (error) {
      if (!(error instanceof ReadStalled)) {
        throw error;
      }
      this.#calibration.refuseStream();
      return await this.#readerAt(offset).next(bytesMax);
    }
  }

  /** Returns whether the byte at `offset` can still be read. */
  async isReadable(offset: number): Promise<boolean> {
    if (this.size === 0) {
      return true;
    }
    const { file, start } = this.#fileAt(Math.min(offset, this.size - 1));
    const at = Math.min(offset, this.size - 1) - start;
    try {
      return (await file.slice(at, at + 1).arrayBuffer()).byteLength === 1;
    } catch {
      return false;
    }
  }

  close(): void {
    this.#reader?.close();
    this.#reader = undefined;
  }

  #readerAt(offset: number): FileReader {
    const kind = this.#calibration.kindAt(offset);
    const { file, start } = this.#fileAt(offset);
    if (this.#reader === undefined || kind !== this.#kind || file !== this.#file) {
      this.#reader?.close();
      this.#file = file;
      this.#reader = this.#open(kind, file, offset - start);
    }
    return this.#reader;
  }

  #open(kind: ReaderKind, file: Blob, offset: number): FileReader {
    this.#kind = kind;
    this.#reading(kind);
    if (kind === "slices") {
      return new SliceReader(file, offset);
    }
    try {
      return new StreamReader(file, offset);
    } catch {
      this.#calibration.refuseStream();
      return this.#open("slices", file, offset);
    }
  }

  #fileAt(offset: number): { file: Blob; start: number } {
    let start = 0;
    for (const file of this.#files) {
      if (offset < start + file.size) {
        return { file, start };
      }
      start += file.size;
    }
    throw new RangeError(`offset ${offset} is beyond the end of the files at ${this.size}`);
  }
}

export function totalSize(files: readonly { size: number }[]): number {
  return files.reduce((sum, { size }) => sum + size, 0);
}
