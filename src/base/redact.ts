/**
 * Takes secrets out of what is about to be logged: by the name of the field, and by the shape of a
 * Kubernetes Secret. Bounded in depth and length, because a log line must never become the load.
 */

export const REDACTED = "[redacted]";

const SECRET_NAME =
  /^(.*[-_.])?(authorization|cookie|password|passwd|passphrase|token|id-?token|access-?token|refresh-?token|bearer|secret|secrets|api-?key|private-?key|client-?key(-?data)?|client-?secret|credential|credentials|kubeconfig)$/;

/** Deeper than any Kubernetes object we log; past it the value is named, not shown. */
const DEPTH_MAX = 8;
const ITEMS_MAX = 100;
const TEXT_MAX = 4_096;

export function redact(value: unknown): unknown {
  return redactAt(value, 0);
}

function redactAt(value: unknown, depth: number): unknown {
  if (typeof value === "string") return scrubText(shorten(value));
  if (typeof value === "bigint") return value.toString();
  if (typeof value !== "object" || value === null) return value;
  if (depth >= DEPTH_MAX) return "[deeper]";
  if (value instanceof Error) return redactError(value, depth);
  if (value instanceof Date) return value.toISOString();
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (Array.isArray(value)) return redactArray(value, depth);
  return redactObject(value as Record<string, unknown>, depth);
}

function redactArray(items: readonly unknown[], depth: number): unknown[] {
  const kept = items.slice(0, ITEMS_MAX).map((item) => redactAt(item, depth + 1));
  return items.length > ITEMS_MAX ? [...kept, `[${items.length - ITEMS_MAX} more]`] : kept;
}

function redactObject(object: Record<string, unknown>, depth: number): Record<string, unknown> {
  const isSecret = object["kind"] === "Secret";
  const redacted: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(object)) {
    const hidden = isSecretName(name) || (isSecret && (name === "data" || name === "stringData"));
    redacted[name] = hidden && field !== undefined && field !== null ? REDACTED : redactAt(field, depth + 1);
  }
  return redacted;
}

function redactError(error: Error, depth: number): Record<string, unknown> {
  const code = (error as { code?: unknown }).code;
  return {
    name: error.name,
    message: scrubText(shorten(error.message)),
    ...(code === undefined ? {} : { code }),
    ...(error.cause === undefined ? {} : { cause: redactAt(error.cause, depth + 1) }),
  };
}

/** `clientKeyData`, `client-key-data` and `CLIENT_KEY_DATA` are one name. */
function isSecretName(name: string): boolean {
  const dashed = name
    .replace(/([a-z0-9])([A-Z])/g, "$1-$2")
    .replace(/_/g, "-")
    .toLowerCase();
  return SECRET_NAME.test(dashed);
}

/**
 * Credentials that stand inside a text: bearer headers, URLs with passwords, PEM keys, JWTs. Each pattern starts
 * at a word boundary and repeats nothing inside a repetition: time is linear in the length.
 */
export function scrubText(text: string): string {
  return text
    .replace(/\b(Bearer|Basic)\s+[A-Za-z0-9\-._~+/]{8,}=*/g, `$1 ${REDACTED}`)
    .replace(/\b([a-z][a-z0-9+]{1,15}:\/\/[^\s/:@]{0,256}):[^\s/@]{1,512}@/gi, `$1:${REDACTED}@`)
    .replace(/\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*/g, REDACTED)
    .replace(/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)/g, REDACTED);
}

function shorten(text: string): string {
  return text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}[${text.length - TEXT_MAX} more]` : text;
}
