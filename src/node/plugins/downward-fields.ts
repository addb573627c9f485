import type { Container, ResourceFieldSelector } from "kubernetes-types/core/v1.js";
import type { Node } from "../../kube/api/node.ts";
import type { Pod } from "../../kube/api/pod.ts";
import { parseQuantity } from "../../kube/quantity.ts";
import { VolumeError } from "../errors.ts";
import { containersOf } from "./pod-resources.ts";

/** What a pod may read about itself in a file: `fieldRef`. */
export function fieldText({ metadata }: Pod, fieldPath: string): string {
  const { name = "", namespace = "", uid = "", labels = {}, annotations = {} } = metadata;
  const plain: Readonly<Record<string, string>> = {
    "metadata.name": name,
    "metadata.namespace": namespace,
    "metadata.uid": uid,
    "metadata.labels": mapText(labels),
    "metadata.annotations": mapText(annotations),
  };
  if (Object.hasOwn(plain, fieldPath)) return plain[fieldPath] ?? "";
  const [, map, key] = /^metadata\.(labels|annotations)\['(.+)'\]$/.exec(fieldPath) ?? [];
  const entries = map === "labels" ? labels : map === "annotations" ? annotations : undefined;
  if (entries !== undefined && key !== undefined)
    return Object.hasOwn(entries, key) ? (entries[key] ?? "") : "";
  throw new VolumeError("final", `unsupported fieldPath: ${fieldPath}`);
}

/** One line a key, sorted, with the value quoted as Go quotes it: shell scripts in the field read it that way. */
function mapText(entries: Readonly<Record<string, string>>): string {
  const lines = Object.entries(entries).map(([key, value]) => `${key}=${goQuote(value)}`);
  return lines.sort().join("\n");
}

const ESCAPES: Readonly<Record<string, string>> = {
  "\x07": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
  "\\": "\\\\",
  '"': '\\"',
};

function goQuote(text: string): string {
  const quoted = Array.from(text, (char) => {
    const escape = ESCAPES[char];
    if (escape !== undefined) return escape;
    if (char === " " || /[\p{L}\p{M}\p{N}\p{P}\p{S}]/u.test(char)) return char;
    const code = char.codePointAt(0) ?? 0;
    if (code < 0x80) return `\\x${code.toString(16).padStart(2, "0")}`;
    return code < 0x10000
      ? `\\u${code.toString(16).padStart(4, "0")}`
      : `\\U${code.toString(16).padStart(8, "0")}`;
  });
  return `"${quoted.join("")}"`;
}

const RESOURCE = /^(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.+)$/;

/** `resourceFieldRef`: what a container may take or asks for, divided and rounded up. */
export function resourceText(pod: Pod, node: Node | undefined, selector: ResourceFieldSelector): string {
  const { containerName = "", resource, divisor } = selector;
  const container = containersOf(pod).find(({ name }) => name === containerName);
  if (container === undefined) throw new VolumeError("final", `container ${containerName} not found`);
  const [, kind, name] = RESOURCE.exec(resource) ?? [];
  if (kind === undefined || name === undefined)
    throw new VolumeError("final", `unsupported container resource: ${resource}`);
  const amount = kind === "limits" ? limitOf(container, name, node) : container.resources?.requests?.[name];
  const nanos = parseQuantity(amount ?? "0").nanos;
  const each = parseQuantity(divisor ?? "0").nanos;
  return String(divideUp(rounded(nanos, name), each === 0n ? NANOS : each));
}

const NANOS = 1_000_000_000n;

/** A container without a limit may take whatever the node has for pods. */
function limitOf({ resources }: Container, name: string, node: Node | undefined): string | undefined {
  const own = resources?.limits?.[name];
  return own ?? (name.startsWith("hugepages-") ? undefined : node?.status?.allocatable?.[name]);
}

/** Processors count in thousandths, everything else in whole units, before anything is divided. */
function rounded(nanos: bigint, name: string): bigint {
  const unit = name === "cpu" ? NANOS / 1_000n : NANOS;
  return divideUp(nanos, unit) * unit;
}

function divideUp(value: bigint, divisor: bigint): bigint {
  return (value + divisor - 1n) / divisor;
}
