import { secrets as secretResource } from "../kube/api/secret.ts";
import type { Client } from "../kube/client/client.ts";
import { isKubeError } from "../kube/errors.ts";
import { scrubText } from "../base/redact.ts";
import { AttacherError } from "./errors.ts";

export interface SecretRef {
  readonly namespace: string;
  readonly name: string;
}

/** What stands where a value stood. */
const STRIPPED = "***stripped***";

/** Below this a value is only replaced where it stands alone: "a" would otherwise eat every word of a message. */
const ANYWHERE_CHARS_MIN = 4;

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

  /** A text from a driver, without what we told it in confidence: as it is, base64, in a URL or quoted. */
  scrub(text: string): string {
    const forms = Object.values(this.#values)
      .filter((value) => value !== "")
      .flatMap((value) => [
        value,
        ...value.split(/\r?\n/).filter((line) => line.trim().length >= ANYWHERE_CHARS_MIN),
        Buffer.from(value).toString("base64"),
        encodeURIComponent(value),
        JSON.stringify(value).slice(1, -1),
      ]);
    // The longest first, so that a value inside another does not leave the rest of that standing.
    const ordered = [...new Set(forms)].sort((a, b) => b.length - a.length);
    return scrubText(ordered.reduce(withoutForm, text));
  }

  toJSON(): string {
    return STRIPPED;
  }

  toString(): string {
    return STRIPPED;
  }
}

function withoutForm(text: string, form: string): string {
  if (form.length >= ANYWHERE_CHARS_MIN) return text.replaceAll(form, STRIPPED);
  const escaped = form.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
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
    Object.fromEntries(
      Object.entries(data).map(([key, value]) => [key, Buffer.from(value, "base64").toString("utf8")]),
    ),
  );
}

const ADVICE: Readonly<Record<string, string>> = {
  NotFound: "creating it again unblocks this",
  Forbidden: "grant this process `get` on it",
};
