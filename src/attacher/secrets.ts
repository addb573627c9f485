import { secrets as secretResource, textOfSecret } from "../kube/api/secret.ts";
import type { Client } from "../kube/client/client.ts";
import { isKubeError } from "../kube/errors.ts";
import { scrubSecrets, STRIPPED, VALUE_CHARS_MIN } from "../base/known-secrets.ts";
import { scrubText } from "../base/redact.ts";
import { AttacherError } from "./errors.ts";

export interface SecretRef {
  readonly namespace: string;
  readonly name: string;
}

/**
 * The content of a Secret, for one call. Printing it, in whatever way, shows nothing; only `reveal` does, and only the
 * request to the driver asks for that.
 */
export class SecretValues {
  readonly #values: Readonly<Record<string, string>>;

  constructor(values: Readonly<Record<string, string>>) {
    this.#values = values;
  }

  reveal(): Readonly<Record<string, string>> {
    return this.#values;
  }

  /** A text from a driver, without what we told it in confidence, in whatever form. */
  scrub(text: string): string {
    const values = Object.values(this.#values);
    const short = values.filter((value) => value !== "" && value.length < VALUE_CHARS_MIN);
    return scrubText(short.reduce(withoutWord, scrubSecrets(text, values)));
  }

  toJSON(): string {
    return STRIPPED;
  }

  toString(): string {
    return STRIPPED;
  }
}

/** "a" would eat every word of a message: a short value is only replaced where it stands alone. */
function withoutWord(text: string, word: string): string {
  const escaped = word.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return text.replaceAll(new RegExp(`(?<![A-Za-z0-9])${escaped}(?![A-Za-z0-9])`, "g"), STRIPPED);
}

/**
 * Read from the API server every time it is needed: never cached, never watched. `purpose` says who needs it, for
 * whoever has to bring it back.
 */
export async function fetchSecret(
  client: Pick<Client, "get">,
  ref: SecretRef,
  { purpose, signal }: { readonly purpose: string; readonly signal: AbortSignal },
): Promise<SecretValues> {
  let data: Readonly<Record<string, string>>;
  try {
    ({ data = {} } = await client.get(secretResource, ref, { signal }));
  } catch (error) {
    if (signal.aborted) throw error;
    // Of an answer that could not be read no word is passed on: it may be the secret.
    const why = isKubeError(error) ? error.code : "failed";
    throw new AttacherError(
      "SecretUnavailable",
      `get secret ${ref.namespace}/${ref.name} for ${purpose}: ${why}; ${ADVICE[why] ?? "it is tried again"}`,
      { subject: { kind: "Secret", ...ref } },
    );
  }
  return new SecretValues(
    Object.fromEntries(Object.entries(data).map(([key, value]) => [key, textOf(ref, key, value, purpose)])),
  );
}

/** CSI carries text. What is none is refused: replaced by U+FFFD it would be another secret, which no scrubbing knows. */
function textOf(ref: SecretRef, key: string, value: string, purpose: string): string {
  const text = textOfSecret(value);
  if (text !== undefined) return text;
  throw new AttacherError(
    "SecretUnavailable",
    `secret ${ref.namespace}/${ref.name} for ${purpose}: the value of "${key}" is not UTF-8 text, and CSI can carry no ` +
      "other; store it as text, for example in base64, as the driver's documentation says",
    { subject: { kind: "Secret", ...ref } },
  );
}

const ADVICE: Readonly<Record<string, string>> = {
  NotFound: "creating it again unblocks this",
  Forbidden: "grant this process `get` on it",
};
