// Recognizes a file that is chosen again after a reload, from a few samples of its content.

/** How many samples are taken, and the bytes of each. */
const SAMPLES = 16;
const SAMPLE_BYTES = 4_096;

/** What identifies a file well enough to catch mistakes. */
export interface FileMark {
  name: string;
  size: number;
  /** A checksum of samples that are spread over the file. */
  checksum: string;
}

/** Reads the samples of files. Rejects if a file cannot be read. */
export function marksOf(files: readonly File[]): Promise<FileMark[]> {
  return Promise.all(files.map((file) => markOf(file, file.size)));
}

/**
 * Finds the marked files among those that were chosen, in the order of the marks. A log that has
 * grown in the meantime is cut to its former size. Returns the name of the first file that is
 * missing if there is one.
 */
export async function findMarked(
  files: readonly File[],
  marks: readonly FileMark[],
): Promise<File[] | { missing: FileMark }> {
  const found: File[] = [];
  for (const mark of marks) {
    const file = await firstWith(files, mark);
    if (file === undefined) {
      return { missing: mark };
    }
    found.push(file.size === mark.size ? file : new File([file.slice(0, mark.size)], file.name));
  }
  return found;
}

async function firstWith(files: readonly File[], mark: FileMark): Promise<File | undefined> {
  for (const file of files) {
    const isLarge = file.size >= mark.size;
    if (isLarge && (await markOf(file, mark.size)).checksum === mark.checksum) {
      return file;
    }
  }
  return undefined;
}

/** Returns the mark of the first `size` bytes. */
async function markOf(file: File, size: number): Promise<FileMark> {
  const last = Math.max(0, size - SAMPLE_BYTES);
  const sum = new Checksum();
  for (let sample = 0; sample < SAMPLES; sample += 1) {
    const at = Math.floor((last * sample) / (SAMPLES - 1));
    const end = Math.min(size, at + SAMPLE_BYTES);
    sum.add(new Uint8Array(await file.slice(at, end).arrayBuffer()));
  }
  return { name: file.name, size, checksum: sum.toString() };
}

/**
 * FNV-1a from two starting values, 64 bits together. `crypto.subtle` would be stronger, but is
 * missing on pages without TLS, and nothing has to be protected: the user owns the file.
 */
class Checksum {
  #sums: [number, number] = [0x811c9dc5, 0x01000193];

  add(bytes: Uint8Array): void {
    let [one, two] = this.#sums;
    for (const byte of bytes) {
      one = Math.imul(one ^ byte, 0x01000193);
      two = Math.imul(two ^ byte, 0x85ebca6b);
    }
    this.#sums = [one, two];
  }

  toString(): string {
    return this.#sums.map((sum) => (sum >>> 0).toString(16).padStart(8, "0")).join("");
  }
}
