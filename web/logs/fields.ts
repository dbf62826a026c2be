// Reading JSON of the server strictly: every field is asked for by name and type.

/** The server sent what subprotocol linerate.logs.v1 has no place for. */
export class NotUnderstood extends Error {}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new NotUnderstood("message is no JSON");
  }
}

export function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}

/** One JSON object; `name` is what a complaint calls it. */
export class Fields {
  readonly #fields: Record<string, unknown>;
  readonly #name: string;

  constructor(value: unknown, name: string) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw new NotUnderstood(`${name} is no object`);
    }
    this.#fields = value as Record<string, unknown>;
    this.#name = name;
  }

  count(name: string): number {
    return this.#expect(name, isCount);
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

  /** The object called `name`, or null where the server says null. */
  objectOrNull(name: string): Fields | null {
    return this.#fields[name] === null ? null : this.object(name);
  }

  /** Each entry of the list called `name`, which all are objects. */
  objects(name: string): Fields[] {
    return this.list(name).map((entry) => new Fields(entry, name));
  }

  strings(name: string): string[] {
    const list = this.list(name);
    if (!list.every((entry) => typeof entry === "string")) {
      throw new NotUnderstood(`${name} holds something else than strings`);
    }
    return list;
  }

  /** Unix seconds, which may lie before 1970, or null. */
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
      throw new NotUnderstood(`${name} holds something else than strings`);
    }
    return fields as Record<string, string>;
  }

  /** An object all of whose fields are counts. */
  counts(name: string): Record<string, number> {
    const fields = this.object(name).#fields;
    if (!Object.values(fields).every(isCount)) {
      throw new NotUnderstood(`${name} holds something else than counts`);
    }
    return fields as Record<string, number>;
  }

  /** A list of `length` counts. */
  countList(name: string, length: number): number[] {
    const list = this.list(name);
    if (list.length !== length || !list.every(isCount)) {
      throw new NotUnderstood(`${this.#name} has no ${length} counts of ${name}`);
    }
    return list;
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
