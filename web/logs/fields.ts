// Reads the server's JSON strictly: every field by name and type.

/** The server sent something that subprotocol linerate.logs.v1 does not define. */
export class NotUnderstood extends Error {}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new NotUnderstood("message is not JSON");
  }
}

export function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}

/** One JSON object; `name` identifies it in errors. */
export class Fields {
  readonly #fields: Record<string, unknown>;
  readonly #name: string;

  constructor(value: unknown, name: string) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw new NotUnderstood(`${name} is not an object`);
    }
    this.#fields = value as Record<string, unknown>;
    this.#name = name;
  }

  count(name: string): number {
    return this.#expect(name, isCount);
  }

  /** A number, possibly negative. */
  number(name: string): number {
    return this.#expect(name, (value): value is number => Number.isFinite(value));
  }

  /** The number called `name`, or null if the server sent null. */
  numberOrNull(name: string): number | null {
    return this.#fields[name] === null ? null : this.number(name);
  }

  /** A number from 0 to 1. */
  share(name: string): number {
    return this.#expect(
      name,
      (value): value is number => typeof value === "number" && value >= 0 && value <= 1,
    );
  }

  flag(name: string): boolean {
    return this.#expect(name, (value) => typeof value === "boolean");
  }

  string(name: string): string {
    return this.#expect(name, (value) => typeof value === "string");
  }

  list(name: string): unknown[] {
    return this.#expect(name, (value) => Array.isArray(value));
  }

  object(name: string): Fields {
    return new Fields(this.#fields[name], name);
  }

  /** The string called `name`, or null if the server sent null. */
  stringOrNull(name: string): string | null {
    return this.#fields[name] === null ? null : this.string(name);
  }

  /** The count called `name`, or null if the server sent null. */
  countOrNull(name: string): number | null {
    return this.#fields[name] === null ? null : this.count(name);
  }

  /** The object called `name`, or null if the server sent null. */
  objectOrNull(name: string): Fields | null {
    return this.#fields[name] === null ? null : this.object(name);
  }

  /** The entries of the list called `name`, all of which must be objects. */
  objects(name: string): Fields[] {
    return this.list(name).map((entry) => new Fields(entry, name));
  }

  strings(name: string): string[] {
    const list = this.list(name);
    if (!list.every((entry) => typeof entry === "string")) {
      throw new NotUnderstood(`${name} contains something other than strings`);
    }
    return list;
  }

  /** Unix seconds, possibly before 1970, or null. */
  time(name: string): number | null {
    return this.#expect(
      name,
      (value): value is number | null => value === null || Number.isFinite(value),
    );
  }

  has(name: string): boolean {
    return this.#fields[name] !== undefined;
  }

  /** An object all of whose fields are strings. */
  texts(name: string): Record<string, string> {
    const fields = this.object(name).#fields;
    if (!Object.values(fields).every((value) => typeof value === "string")) {
      throw new NotUnderstood(`${name} contains something other than strings`);
    }
    return fields as Record<string, string>;
  }

  /** An object all of whose fields are counts. */
  counts(name: string): Record<string, number> {
    const fields = this.object(name).#fields;
    if (!Object.values(fields).every(isCount)) {
      throw new NotUnderstood(`${name} contains something other than counts`);
    }
    return fields as Record<string, number>;
  }

  /** A list of `length` counts. */
  countList(name: string, length: number): number[] {
    const list = this.list(name);
    if (list.length !== length || !list.every(isCount)) {
      throw new NotUnderstood(`${this.#name} does not have ${length} counts in ${name}`);
    }
    return list;
  }

  /** A list of `length` counts, each of which may be null. */
  countOrNullList(name: string, length: number): (number | null)[] {
    const list = this.list(name);
    if (list.length !== length || !list.every((it) => it === null || isCount(it))) {
      throw new NotUnderstood(`${this.#name} does not have ${length} counts or nulls in ${name}`);
    }
    return list as (number | null)[];
  }

  /** An object all of whose fields are lists of `length` counts. */
  countLists(name: string, length: number): Record<string, number[]> {
    const fields = this.object(name);
    return Object.fromEntries(
      Object.keys(fields.#fields).map((key) => [key, fields.countList(key, length)]),
    );
  }

  #expect<T>(name: string, is: (value: unknown) => value is T): T {
    const value = this.#fields[name];
    if (!is(value)) {
      throw new NotUnderstood(`${this.#name} has no valid ${name}`);
    }
    return value;
  }
}
