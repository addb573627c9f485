import { getOption, type DescField, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import {
  reflect,
  type ReflectList,
  type ReflectMap,
  type ReflectMessage,
  type ReflectMessageGet,
} from "@bufbuild/protobuf/reflect";
import { scrubSecrets, STRIPPED, type KnownSecrets } from "../base/known-secrets.ts";
import { CsiError } from "./errors.ts";
import { csi_secret } from "./gen/csi_pb.ts";

/**
 * Messages as they may be logged. The descriptor decides, not the name of a field: whatever the protocol marks with
 * `csi_secret` is stripped wherever it is nested. Unknown fields are left out, because a newer peer may have put a
 * secret there.
 */

/** Service account tokens, which the kubelet puts into volume_context unless the CSIDriver asks for secrets. */
export const TOKENS_KEY = "csi.storage.k8s.io/serviceAccount.tokens";

/** Sensitive although the protocol does not mark them: options such as `password=` are mount flags. */
const SENSITIVE_FIELDS: ReadonlySet<string> = new Set(["csi.v1.VolumeCapability.MountVolume.mount_flags"]);

/** A copy with plain values and the names of the protocol; the message itself stays as it is. */
export function redactMessage<S extends DescMessage>(
  schema: S,
  message: MessageShape<S>,
): Record<string, unknown> {
  return redactReflected(reflect(schema, message, false));
}

/** `redactMessage` as one line of JSON. */
export function renderMessage<S extends DescMessage>(schema: S, message: MessageShape<S>): string {
  return JSON.stringify(redactMessage(schema, message));
}

function redactReflected(message: ReflectMessage): Record<string, unknown> {
  const fields = message.sortedFields.filter((field) => message.isSet(field));
  return Object.fromEntries(
    fields.map((field) => [
      field.name,
      isSensitive(field) ? STRIPPED : redactField(field, message.get(field)),
    ]),
  );
}

function redactField(field: DescField, value: ReflectMessageGet): unknown {
  switch (field.fieldKind) {
    case "message":
      return redactNested(value as ReflectMessage);
    case "enum":
      return field.enum.value[value as number]?.name ?? value;
    case "list":
      return [...(value as ReflectList)].map((item) => redactItem(field, item));
    case "map":
      return redactMap(field, value as ReflectMap);
    case "scalar":
      return plain(value);
  }
}

function redactMap(field: DescField & { fieldKind: "map" }, map: ReflectMap): Record<string, unknown> {
  return Object.fromEntries(
    [...map].map(([key, item]) => [String(key), key === TOKENS_KEY ? STRIPPED : redactItem(field, item)]),
  );
}

function redactItem(field: DescField & { fieldKind: "list" | "map" }, item: unknown): unknown {
  const kind = field.fieldKind === "list" ? field.listKind : field.mapKind;
  if (kind === "message") return redactNested(item as ReflectMessage);
  if (kind === "enum") return field.enum?.value[item as number]?.name ?? item;
  return plain(item);
}

/** `google.protobuf.BoolValue` and its kin are one value with presence: shown as that value. */
function redactNested(message: ReflectMessage): unknown {
  const wrapper = /^google\.protobuf\.\w+Value$/.test(message.desc.typeName);
  const field = wrapper ? message.findNumber(1) : undefined;
  return field === undefined ? redactReflected(message) : plain(message.get(field));
}

function plain(value: unknown): unknown {
  if (typeof value === "bigint") return value.toString();
  return value instanceof Uint8Array ? `${value.length} bytes` : value;
}

function isSensitive(field: DescField): boolean {
  return getOption(field, csi_secret) || SENSITIVE_FIELDS.has(`${field.parent.typeName}.${field.name}`);
}

/** The values that must not come back in any text about this message. */
export function sensitiveValues<S extends DescMessage>(schema: S, message: MessageShape<S>): string[] {
  return collect(reflect(schema, message, false), isSensitive);
}

/**
 * Those that must not come back in a text about anything else either. Mount flags are not among them: `noatime` is no secret,
 * and one that is one comes from a PersistentVolume, which whoever reads our texts may read as well.
 */
export function secretValues<S extends DescMessage>(schema: S, message: MessageShape<S>): string[] {
  return collect(reflect(schema, message, false), (field) => getOption(field, csi_secret));
}

type Chooses = (field: DescField) => boolean;

function collect(message: ReflectMessage, chosen: Chooses): string[] {
  return message.fields.flatMap((field) => {
    if (!message.isSet(field)) return [];
    const value = message.get(field);
    if (field.fieldKind === "message") return collect(value as ReflectMessage, chosen);
    if (field.fieldKind === "list") return collectItems(field, [...(value as ReflectList)], chosen);
    return field.fieldKind === "map" ? collectMap(field, value as ReflectMap, chosen) : [];
  });
}

function collectItems(field: DescField, items: readonly unknown[], chosen: Chooses): string[] {
  const sensitive = chosen(field);
  return items.flatMap((item) => {
    if (typeof item === "object") return collect(item as ReflectMessage, chosen);
    return sensitive && typeof item === "string" ? [item] : [];
  });
}

function collectMap(field: DescField, map: ReflectMap, chosen: Chooses): string[] {
  const items = chosen(field) ? collectItems(field, [...map.values()], chosen) : [];
  const tokens = map.get(TOKENS_KEY);
  return typeof tokens === "string" ? [...items, tokens, ...tokensIn(tokens)] : items;
}

/** The kubelet's value is `{"audience":{"token":"...","expirationTimestamp":"..."}}`; each token counts alone too. */
function tokensIn(text: string): string[] {
  return [...text.matchAll(/"token"\s*:\s*"([^"]+)"/g)].map(([, token]) => token ?? "");
}

/** Takes these values out of a text, in whatever form they stand there. */
export function scrubValues(text: string, values: readonly string[]): string {
  return scrubSecrets(text, values);
}

/** The error without the values of the request it answers, and without those of others: a driver may repeat any of them. */
export function scrubError<S extends DescMessage>(
  error: CsiError,
  schema: S,
  request: MessageShape<S>,
  known?: KnownSecrets,
): CsiError {
  const own = scrubValues(error.detail, sensitiveValues(schema, request));
  const detail = known?.scrub(own) ?? own;
  if (detail === error.detail) return error;
  // Without the cause, which has the same words.
  return new CsiError(error.code, detail, { unanswered: error.unanswered });
}
