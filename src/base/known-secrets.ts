/**
 * Secret values this process has handled, and texts without them. A driver may repeat any value it was ever given, in any of
 * its errors: one of another call, one from before a rotation, encoded in whatever way its backend does. So values are
 * remembered from the moment they are used, and taken out of every text that comes back.
 *
 * Bound: the `valuesMax` used last, and of these `charsMax` characters; what is older is forgotten. Values of less than `VALUE_CHARS_MIN`
 * characters are not remembered: they are words such as `ro`, and taking them out of every text to come would garble all
 * and hide nothing. A text without any of the values is returned as it is.
 */
export class KnownSecrets {
  readonly #valuesMax: number;
  readonly #charsMax: number;
  #chars = 0;
  /** The forms each may take, in the order of use. */
  readonly #forms = new Map<string, readonly string[]>();

  /** At 15 forms a value and 1 kB of text, 1,000 values take some 10 ms; only errors and debug logs pay that. */
  constructor({ valuesMax = 1_000, charsMax = CHARS_MAX }: KnownSecretsOptions = {}) {
    this.#valuesMax = valuesMax;
    this.#charsMax = charsMax;
  }

  learn(values: Iterable<string>): void {
    for (const value of values) {
      if (value.trim().length < VALUE_CHARS_MIN) continue;
      const forms = this.#forms.get(value) ?? formsOf(value);
      this.#forget(value);
      this.#forms.set(value, forms);
      this.#chars += value.length;
      this.#forgetOldest();
    }
  }

  /** The one used last stays, however long it is. */
  #forgetOldest(): void {
    for (const [oldest] of this.#forms) {
      const many = this.#forms.size > this.#valuesMax || this.#chars > this.#charsMax;
      if (!many || this.#forms.size === 1) return;
      this.#forget(oldest);
    }
  }

  #forget(value: string): void {
    if (this.#forms.delete(value)) this.#chars -= value.length;
  }

  scrub(text: string): string {
    return cutOut(text, this.#allForms());
  }

  /** A copy of plain data with every text in it scrubbed, the names of fields included. */
  scrubDeep(value: unknown): unknown {
    if (this.#forms.size === 0) return value;
    if (typeof value === "string") return this.scrub(value);
    if (Array.isArray(value)) return value.map((item) => this.scrubDeep(item));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [this.scrub(key), this.scrubDeep(item)]),
    );
  }

  *#allForms(): Iterable<string> {
    for (const forms of this.#forms.values()) yield* forms;
  }
}

export interface KnownSecretsOptions {
  readonly valuesMax?: number;
  readonly charsMax?: number;
}

/** A Secret of 1 MiB in lines takes 39 MB in all its forms: this bounds them to some 160 MB. 1,000 keys of 4 kB fit. */
const CHARS_MAX = 4 * 1_024 * 1_024;

/** What stands where a value stood. */
export const STRIPPED = "***stripped***";

export const VALUE_CHARS_MIN = 4;

/** A part of a longer base64 text is only looked for from this length on; shorter ones occur by chance. */
const INNER_CHARS_MIN = 8;

/** A text without these values, in whatever form they stand there; short ones are left alone. */
export function scrubSecrets(text: string, values: Iterable<string>): string {
  const long = [...values].filter((value) => value.trim().length >= VALUE_CHARS_MIN);
  return cutOut(text, long.flatMap(formsOf));
}

/**
 * All places are found in the text as it was, and cut out together: one value after the other would leave the rest of one that
 * overlaps with another, and would look for values in what was put in their place.
 */
function cutOut(text: string, forms: Iterable<string>): string {
  const places: [start: number, end: number][] = [];
  for (const form of forms)
    for (let at = text.indexOf(form); at >= 0; at = text.indexOf(form, at + 1))
      places.push([at, at + form.length]);
  if (places.length === 0) return text;
  places.sort(([a], [b]) => a - b);
  let scrubbed = "";
  let done = 0;
  for (const [start, end] of places) {
    if (start > done || done === 0) scrubbed += text.slice(done, start) + STRIPPED;
    done = Math.max(done, end);
  }
  return scrubbed + text.slice(done);
}

/** As it is, line by line, trimmed; each of these as base64, hex, in a URL, quoted once and twice. */
export function formsOf(value: string): readonly string[] {
  const lines = value.split(/\r\n|\r|\n/).map((line) => line.trim());
  const parts = [value, value.trim(), ...lines].filter((part) => part.trim().length >= VALUE_CHARS_MIN);
  const forms = new Set(
    [...new Set(parts)].flatMap((part) => [
      part,
      ...base64Of(part),
      ...hexOf(part),
      ...urlOf(part),
      ...quotesOf(part),
    ]),
  );
  return [...forms].filter((form) => form.length >= VALUE_CHARS_MIN);
}

function base64Of(value: string): string[] {
  const bytes = Buffer.from(value);
  const whole = bytes.toString("base64");
  const forms = [whole, whole.replace(/=+$/, "")];
  // Within a longer text, as in `user:password` of a Basic header: without the characters that depend on its neighbours.
  for (const offset of [0, 1, 2]) {
    const shifted = Buffer.concat([Buffer.alloc(offset), bytes])
      .toString("base64")
      .replace(/=+$/, "");
    const start = offset === 0 ? 0 : offset + 1;
    const inner = shifted.slice(start, Math.floor(((offset + bytes.length) * 8) / 6));
    if (inner.length >= INNER_CHARS_MIN) forms.push(inner);
  }
  return forms.flatMap((form) => [form, form.replaceAll("+", "-").replaceAll("/", "_")]);
}

function hexOf(value: string): string[] {
  const hex = Buffer.from(value).toString("hex");
  return [hex, hex.toUpperCase()];
}

/** Half a surrogate pair cannot be encoded; whoever encodes it throws. */
export function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, "\uFFFD");
}

function urlOf(value: string): string[] {
  const encoded = encodeURIComponent(wellFormed(value));
  const strict = encoded.replaceAll(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
  const lower = (text: string) => text.replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase());
  return [encoded, strict, encodeURI(wellFormed(value))].flatMap((form) => [
    form,
    lower(form),
    form.replaceAll("%20", "+"),
  ]);
}

/** As JSON has it, as Go's JSON has it, in ASCII alone, and the first within another JSON text. */
function quotesOf(value: string): string[] {
  const quoted = JSON.stringify(value).slice(1, -1);
  const escape = (c: string) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return [
    quoted,
    quoted.replaceAll(/[<>&\u2028\u2029]/g, escape),
    quoted.replaceAll(/[^\x20-\x7e]/g, escape),
    JSON.stringify(quoted).slice(1, -1),
    value.replaceAll("'", "'\\''"),
  ];
}
