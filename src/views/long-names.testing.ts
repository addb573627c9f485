import { volumeAttachmentName } from "../volumes/names.ts";
import type { Fault } from "./faults.testing.ts";
import { DRIVER } from "./objects.testing.ts";

/** Names as real clusters have them, for the short ones of objects.testing.ts. */
const LONG: readonly (readonly [RegExp, string])[] = [
  [/\bpv-1\b/g, "pvc-0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b9f3e"],
  [/\bpv-2\b/g, "pvc-7c6d5e4f-3a2b-4c1d-9e8f-7a6b5c4d3e2f"],
  [/\bsnapcontent-1\b/g, "snapcontent-5d1e8a3c-90b4-4f7e-b2d6-3c8f0a7e6b15"],
  [/\bnode-a\b/g, "ip-10-0-117-203.eu-central-1.compute.internal"],
  [/\bnode-b\b/g, "ip-10-0-117-204.eu-central-1.compute.internal"],
  [/\bnode-c\b/g, "ip-10-0-118-9.eu-central-1.compute.internal"],
  [/\bshop\b/g, "payments-production-eu-central"],
  [/\bweb\b/g, "checkout-api-7d9c5b6f48-x8x2p"],
  [/\bdata\b/g, "postgres-data-checkout-primary"],
  [/\bteam-quota\b/g, "payments-production-compute-quota"],
  [/\bcsi\.example\.com\b/g, "loop.csi.storage.internal.example.com"],
];

const LONG_DRIVER = renamed(DRIVER);

/** The same fault in a cluster with long names. Attachments that a controller made are called as it would call them. */
export function withLongNames({ name, reason, objects, subject }: Fault): Fault {
  const digests = objects.attachments.flatMap(({ metadata, spec }) => {
    const node = typeof spec === "object" ? spec.nodeName : "";
    const volumeHandle = handleOf(objects, typeof spec === "object" ? spec.source.persistentVolumeName : "");
    const own = volumeAttachmentName({ driver: DRIVER, volumeHandle }, node);
    if (own !== metadata.name) return [];
    return [[own, volumeAttachmentName({ driver: LONG_DRIVER, volumeHandle }, renamed(node))] as const];
  });
  const rename = (text: string) =>
    digests.reduce((result, [before, after]) => result.replaceAll(before, after), renamed(text));
  return { name, reason, objects: deep(objects, rename), subject: deep(subject, rename) };
}

function handleOf({ volumes }: Fault["objects"], pv: string | undefined): string {
  return volumes.find(({ metadata }) => metadata.name === pv)?.spec?.csi?.volumeHandle ?? "vol-1";
}

function renamed(text: string): string {
  return LONG.reduce((result, [name, long]) => result.replaceAll(name, long), text);
}

/** Every text in it, and every key; what is undefined stays so. */
function deep<T>(value: T, rename: (text: string) => string): T {
  if (typeof value === "string") return rename(value) as T;
  if (Array.isArray(value)) return value.map((item: unknown) => deep(item, rename)) as T;
  if (typeof value !== "object" || value === null) return value;
  // Fields of the API are called `data` and `web` nowhere that views look.
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, key === "kind" ? item : deep(item, rename)]),
  ) as T;
}
