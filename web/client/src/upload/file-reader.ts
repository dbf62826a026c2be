// Two ways to read a file for sending, with one interface.

/** Reads a file front to back. */
export interface FileReader {
  /** How many bytes to read at a time. */
  readonly chunkBytes: number;
  /** The number of bytes in flight with which this reader is fastest; it does not use more. */
  readonly inFlightBytes: number;
  /**
   * Returns the next bytes, 1 to `bytesMax` of them; never called at the end of the file.
   *
   * A `Uint8Array` is valid until the next call. Rejects if the file can no longer be read.
   */
  next(bytesMax: number): Promise<Blob | Uint8Array<ArrayBuffer>>;
  /** Releases the file. */
  close(): void;
}

export type ReaderKind = "slices" | "stream";

/** Returns slices of the file: the browser reads them when it sends them. */
export class SliceReader implements FileReader {
  readonly chunkBytes = 16 * 1024 * 1024;
  readonly inFlightBytes = 64 * 1024 * 1024;
  readonly #file: Blob;
  #offset: number;

  constructor(file: Blob, offset: number) {
    this.#file = file;
    this.#offset = offset;
  }

  next(bytesMax: number): Promise<Blob> {
    const slice = this.#file.slice(this.#offset, this.#offset + bytesMax);
    this.#offset += slice.size;
    return Promise.resolve(slice);
  }

  close(): void {
    this.#offset = this.#file.size;
  }
}

/** Reads of the file's stream did not resolve, several times in a row. */
export class ReadStalled extends Error {}

/** With buffers above half a MiB, Chromium loses the advantage of this way. */
const STREAM_BUFFER_BYTES = 512 * 1024;
/** In Chromium a read into a buffer sometimes never resolves; it counts as lost after this time. */
const STALL_MS = 200;
/** Stalls without progress in between after which another way of reading should take over. */
const STALLS_MAX = 3;

/** Reads through two buffers: one is filled while the other is sent. */
export class StreamReader implements FileReader {
  readonly chunkBytes = STREAM_BUFFER_BYTES;
  /** The browser copies what is sent from a buffer, so few bytes are kept in flight. */
  readonly inFlightBytes = 4 * STREAM_BUFFER_BYTES;
  readonly #file: Blob;
  readonly #stallMs: number;
  #reader: ReadableStreamBYOBReader;
  /** The offset of the current read. */
  #offset: number;
  #spare: ArrayBuffer[] = [
    new ArrayBuffer(STREAM_BUFFER_BYTES),
    new ArrayBuffer(STREAM_BUFFER_BYTES),
  ];
  #lent: ArrayBuffer | undefined;
  #pending: Promise<ReadableStreamReadResult<Uint8Array<ArrayBuffer>>> | undefined;

  /** Throws a `TypeError` in browsers that cannot read files into buffers. */
  constructor(file: Blob, offset: number, stallMs = STALL_MS) {
    this.#file = file;
    this.#offset = offset;
    this.#stallMs = stallMs;
    this.#reader = openStream(file, offset);
  }

  async next(bytesMax: number): Promise<Uint8Array<ArrayBuffer>> {
    this.#takeBack();
    for (let stalls = 0; stalls < STALLS_MAX; stalls += 1) {
      this.#pending ??= this.#read(bytesMax);
      const result = await within(this.#pending, this.#stallMs);
      this.#pending = undefined;
      if (result !== "stalled") {
        return this.#lend(result, bytesMax);
      }
      this.#reopen();
    }
    throw new ReadStalled(`no bytes at ${this.#offset} after ${STALLS_MAX} attempts`);
  }

  close(): void {
    this.#reader.cancel().catch(() => undefined);
  }

  #lend(
    result: ReadableStreamReadResult<Uint8Array<ArrayBuffer>>,
    bytesMax: number,
  ): Uint8Array<ArrayBuffer> {
    if (result.done || result.value.byteLength === 0) {
      throw new DOMException("the file was truncated while it was read", "NotReadableError");
    }
    this.#offset += result.value.byteLength;
    this.#lent = result.value.buffer;
    // The next read starts now, into the other buffer, but never at the end of the file, where
    // reads are most likely to hang.
    if (this.#offset < this.#file.size) {
      this.#pending = this.#read(bytesMax);
      this.#pending.catch(() => undefined); // The next `await` reports the failure.
    }
    return result.value;
  }

  #read(bytesMax: number): Promise<ReadableStreamReadResult<Uint8Array<ArrayBuffer>>> {
    const buffer = this.#spare.pop() ?? new ArrayBuffer(STREAM_BUFFER_BYTES);
    const length = Math.min(buffer.byteLength, bytesMax, this.#file.size - this.#offset);
    return this.#reader.read(new Uint8Array(buffer, 0, length));
  }

  #takeBack(): void {
    if (this.#lent !== undefined) {
      this.#spare.push(this.#lent);
      this.#lent = undefined;
    }
  }

  /** Abandons the stalled read and the buffer that it holds. */
  #reopen(): void {
    this.#reader.cancel().catch(() => undefined);
    this.#reader = openStream(this.#file, this.#offset);
  }
}

function openStream(file: Blob, offset: number): ReadableStreamBYOBReader {
  return file.slice(offset).stream().getReader({ mode: "byob" });
}

async function within<T>(work: Promise<T>, ms: number): Promise<T | "stalled"> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const alarm = new Promise<"stalled">((resolve) => {
    timer = setTimeout(() => resolve("stalled"), ms);
  });
  try {
    return await Promise.race([work, alarm]);
  } finally {
    clearTimeout(timer);
  }
}
