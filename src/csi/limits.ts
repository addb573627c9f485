import {
  getOption,
  ScalarType,
  type DescField,
  type DescMessage,
  type MessageShape,
} from "@bufbuild/protobuf";
import { reflect, type ReflectList, type ReflectMap, type ReflectMessage } from "@bufbuild/protobuf/reflect";
import { csi_secret, TopologySchema, type Topology } from "./gen/csi_pb.ts";
import { TOKENS_KEY } from "./redact.ts";

/**
 * How large a field may be and what it may hold, for any request of the protocol: the descriptor is walked, so a message
 * added later is checked too. Says what is wrong, or nothing; whoever asks answers INVALID_ARGUMENT. What is required,
 * known or supported is the driver's business and not looked at here.
 */
export function limitProblem<S extends DescMessage>(schema: S, message: MessageShape<S>): string | undefined {
  return messageProblem(reflect(schema, message, false), "");
}

const STRING_BYTES_MAX = 128;
/** Of keys and values together; also of all mount flags together. */
const MAP_BYTES_MAX = 4_096;
/** The longest path Linux takes. The protocol wants at least 128 bytes to be accepted. */
const PATH_BYTES_MAX = 4_096;
const NODE_ID_BYTES_MAX = 256;
const SECRET_KEY = /^[A-Za-z0-9\-_.]+$/;
/** Control characters except tab, line feed and carriage return. */
const BANNED_IN_NAMES = /[^\P{Cc}\t\n\r]/u;
/** Sizes and counts: none of them may be negative, whatever they are for. */
const NEVER_NEGATIVE: ReadonlySet<string> = new Set([
  "max_entries",
  "max_results",
  "required_bytes",
  "limit_bytes",
]);

function messageProblem(message: ReflectMessage, prefix: string): string | undefined {
  if (message.desc.typeName === TopologySchema.typeName) {
    return topologyProblem((message.message as Topology).segments);
  }
  for (const field of message.sortedFields) {
    const problem = message.isSet(field) ? fieldProblem(message, field, `${prefix}${field.name}`) : undefined;
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function fieldProblem(message: ReflectMessage, field: DescField, name: string): string | undefined {
  const value = message.get(field);
  switch (field.fieldKind) {
    case "message":
      return messageProblem(value as ReflectMessage, `${name}.`);
    case "map":
      return mapProblem(field, value as ReflectMap, name);
    case "list":
      return listProblem(field, [...(value as ReflectList)], name);
    case "enum":
      return undefined;
    case "scalar":
      if (field.scalar === ScalarType.STRING) return stringProblem(field.name, value as string, name);
      return NEVER_NEGATIVE.has(field.name) && Number(value) < 0 ? `${name} is negative` : undefined;
  }
}

function stringProblem(field: string, value: string, name: string): string | undefined {
  const bytesMax = bytesMaxOf(field);
  const bytes = Buffer.byteLength(value);
  if (bytes > bytesMax) return `${name} takes ${bytes} bytes, at most ${bytesMax} are allowed`;
  if (field.endsWith("_path") && value.includes("\0")) return `${name} contains a NUL`;
  if (field === "name" && BANNED_IN_NAMES.test(value)) return `${name} contains a control character`;
  return undefined;
}

function bytesMaxOf(field: string): number {
  if (field.endsWith("_path")) return PATH_BYTES_MAX;
  return field === "node_id" ? NODE_ID_BYTES_MAX : STRING_BYTES_MAX;
}

function listProblem(field: DescField, items: readonly unknown[], name: string): string | undefined {
  if (field.name === "mount_flags") {
    // Not one of them is quoted: a flag may be a password.
    return totalProblem(items as string[], name);
  }
  return firstProblem(items, (item, at) =>
    typeof item === "string"
      ? stringProblem(field.name, item, `${name}[${at}]`)
      : typeof item === "object"
        ? messageProblem(item as ReflectMessage, `${name}[${at}].`)
        : undefined,
  );
}

function mapProblem(field: DescField, map: ReflectMap, name: string): string | undefined {
  // Tokens are the kubelet's: several audiences exceed the limit, and no user can make them shorter.
  const entries = [...map].filter(([key]) => key !== TOKENS_KEY) as [string, string][];
  const isSecret = getOption(field, csi_secret);
  if (isSecret && entries.some(([key]) => !SECRET_KEY.test(key))) {
    return `${name} has a key with other characters than letters, digits, "-", "_" and "."`;
  }
  return totalProblem(entries.flat(), name);
}

function totalProblem(texts: readonly string[], name: string): string | undefined {
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  return bytes > MAP_BYTES_MAX
    ? `${name} takes ${bytes} bytes in total, at most ${MAP_BYTES_MAX} are allowed`
    : undefined;
}

function firstProblem<T>(
  items: readonly T[],
  problemOf: (item: T, at: number) => string | undefined,
): string | undefined {
  for (const [at, item] of items.entries()) {
    const problem = problemOf(item, at);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

const LABEL = /^[A-Za-z0-9]([A-Za-z0-9\-_.]{0,61}[A-Za-z0-9])?$/;

/** Keys are `prefix/name` with a domain in front, or `name`; keys that differ only in case are one key. */
export function topologyProblem(segments: Readonly<Record<string, string>>): string | undefined {
  const keys = Object.keys(segments);
  if (new Set(keys.map((key) => key.toLowerCase())).size < keys.length) {
    return "topology: two keys differ only in upper and lower case";
  }
  return firstProblem(Object.entries(segments), ([key, value]) => {
    const parts = key.split("/");
    if (parts.length > 2 || !parts.every((part) => LABEL.test(part))) {
      return `topology: ${JSON.stringify(key.slice(0, 130))} is not a name of at most 63 characters, with an optional prefix of at most 63`;
    }
    return value === "" || LABEL.test(value)
      ? undefined
      : `topology: the value of ${key} is not a name of at most 63 characters`;
  });
}

/** The name a driver gives itself: what csi-sanity accepts as well, so letters at both ends. */
export function pluginNameProblem(name: string): string | undefined {
  if (/^[A-Za-z]([A-Za-z0-9\-.]{0,61}[A-Za-z])?$/.test(name)) return undefined;
  return `driver name ${JSON.stringify(name.slice(0, 100))}: expected 1 to 63 letters, digits, "-" and ".", with a letter at both ends`;
}
