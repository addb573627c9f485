import type { EmptyDirVolumeSource } from "kubernetes-types/core/v1.js";
import type { Node } from "../../kube/api/node.ts";
import type { Pod } from "../../kube/api/pod.ts";
import { formatQuantity, parseQuantity } from "../../kube/quantity.ts";
import { VolumeError } from "../errors.ts";
import { containersOf, podLimit, toBytes } from "./pod-resources.ts";
import type { ResourceRequirements } from "kubernetes-types/core/v1.js";

/** What an emptyDir is made of. */
export type Medium =
  | { readonly kind: "disk" }
  /** Undefined size: whatever the kernel gives, half of the memory. */
  | { readonly kind: "memory"; readonly sizeBytes: bigint | undefined }
  | { readonly kind: "huge-pages"; readonly pageSize: string };

export function mediumOf({
  source,
  pod,
  node,
}: {
  readonly source: EmptyDirVolumeSource;
  readonly pod: Pod;
  readonly node: Node | undefined;
}): Medium {
  const medium = source.medium ?? "";
  if (medium === "") return { kind: "disk" };
  if (medium === "Memory") return { kind: "memory", sizeBytes: memorySizeBytes(source, pod, node) };
  if (medium === "HugePages" || medium.startsWith("HugePages-"))
    return { kind: "huge-pages", pageSize: pageSizeOf(medium, pod) };
  throw new VolumeError("final", `unknown storage medium "${medium}"`);
}

/** The least of what the node has for pods, what the pod may take, and what the volume may hold. */
function memorySizeBytes(
  { sizeLimit }: EmptyDirVolumeSource,
  pod: Pod,
  node: Node | undefined,
): bigint | undefined {
  const limits = [
    toBytes(node?.status?.allocatable?.["memory"]),
    podLimit(pod, "memory"),
    toBytes(sizeLimit),
  ].filter((limit) => limit !== undefined && limit > 0n);
  return limits.reduce(
    (least, limit) => (least === undefined || (limit ?? 0n) < least ? limit : least),
    undefined,
  );
}

const HUGE_PAGES = "hugepages-";

/** `2Mi` as the kernel takes it: its own page sizes, of those the pod asks for. */
function pageSizeOf(medium: string, pod: Pod): string {
  const requested = requestedPageSizes(pod);
  if (medium === "HugePages") {
    if (requested.size > 1)
      throw new VolumeError(
        "final",
        "medium: HugePages can't be used if container requests multiple huge page sizes",
      );
    const [only] = requested;
    if (only !== undefined) return only;
  }
  const named = canonical(medium.slice("HugePages-".length));
  if (requested.has(named)) return named;
  throw new VolumeError(
    "final",
    `medium ${medium}: hugePages storage requested, but there is no resource request for huge pages`,
  );
}

function requestedPageSizes(pod: Pod): ReadonlySet<string> {
  const whole = (pod.spec as { readonly resources?: ResourceRequirements } | undefined)?.resources;
  const requests = [whole, ...containersOf(pod).map(({ resources }) => resources)].map(
    (each) => each?.requests,
  );
  const names = requests.flatMap((each) => Object.keys(each ?? {}));
  return new Set(
    names
      .filter((name) => name.startsWith(HUGE_PAGES))
      .map((name) => canonical(name.slice(HUGE_PAGES.length))),
  );
}

function canonical(pageSize: string): string {
  try {
    return formatQuantity(parseQuantity(pageSize));
  } catch {
    return pageSize;
  }
}

/** What the mount is asked for. `noswap` keeps secrets out of the swap. */
export function mountOf(
  medium: Exclude<Medium, { kind: "disk" }>,
  { noSwap }: { readonly noSwap: boolean },
): { readonly source: string; readonly type: string; readonly options: readonly string[] } {
  if (medium.kind === "huge-pages")
    return { source: "nodev", type: "hugetlbfs", options: [`pagesize=${medium.pageSize}`] };
  const size = medium.sizeBytes === undefined ? [] : [`size=${medium.sizeBytes}`];
  return { source: "tmpfs", type: "tmpfs", options: [...size, ...(noSwap ? ["noswap"] : [])] };
}
