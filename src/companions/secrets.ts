import { scrubSecrets } from "../base/known-secrets.ts";
import { scrubText } from "../base/redact.ts";
import { secrets as secretResource, textOfSecret } from "../kube/api/secret.ts";
import type { Client } from "../kube/client/client.ts";
import { isKubeError } from "../kube/errors.ts";
import { StorageError } from "./errors.ts";

export interface SecretRef {
  readonly name: string;
  readonly namespace: string;
}

/** What `${...}` in a class may stand for. */
export interface TemplateValues {
  readonly [token: string]: string | undefined;
}

/**
 * The secret a class names for one purpose, its templates filled in; undefined if it names none. Half a name is an
 * error: a driver called without the secret that was meant for it would do the wrong thing.
 */
export function secretRefOf(
  parameters: Readonly<Record<string, string>>,
  prefix: string,
  values: TemplateValues,
): SecretRef | undefined {
  const [name, namespace] = [parameters[`${prefix}-name`], parameters[`${prefix}-namespace`]];
  if (name === undefined && namespace === undefined) return undefined;
  if (!name || !namespace) {
    throw new StorageError("BadClass", `the class gives ${prefix}-name or ${prefix}-namespace but not both`);
  }
  return { name: fill(name, values), namespace: fill(namespace, values) };
}

function fill(template: string, values: TemplateValues): string {
  return template.replaceAll(/\$\{([^}]*)\}/g, (whole, token: string) => {
    const value = values[token];
    if (value === undefined) {
      throw new StorageError(
        "BadClass",
        `the class names a secret with ${whole}, which stands for nothing here`,
      );
    }
    return value;
  });
}

/** The values of a secret, for one call, and a way to keep them out of what is said about it. */
export interface SecretValues {
  readonly values: Record<string, string>;
  readonly scrub: (text: string) => string;
}

const NO_SECRET: SecretValues = { values: {}, scrub: (text) => text };

/** Read every time it is needed: never cached, never watched. */
export async function fetchSecret(
  client: Pick<Client, "get">,
  ref: SecretRef | undefined,
  signal: AbortSignal,
): Promise<SecretValues> {
  if (!ref) return NO_SECRET;
  try {
    const { data = {} } = await client.get(secretResource, ref, { signal });
    const values = Object.fromEntries(
      Object.entries(data).map(([key, value]) => [key, textOf(ref, key, value)]),
    );
    return { values, scrub: (text) => scrubText(scrubSecrets(text, Object.values(values))) };
  } catch (error) {
    if (signal.aborted || error instanceof StorageError) throw error;
    // Of an answer that could not be read no word is passed on: it may be the secret.
    const why = isKubeError(error) ? error.code : "failed";
    throw new StorageError("SecretUnavailable", `get secret ${ref.namespace}/${ref.name}: ${why}`);
  }
}

/** CSI carries text; what is none would arrive as another value. */
function textOf({ namespace, name }: SecretRef, key: string, value: string): string {
  const text = textOfSecret(value);
  if (text !== undefined) return text;
  throw new StorageError(
    "SecretUnavailable",
    `secret ${namespace}/${name}: the value of "${key}" is not UTF-8 text, and CSI can carry no other`,
  );
}
