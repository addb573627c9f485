import { open } from "node:fs/promises";
import { HostError, type FileStat, type MountRequest, type MountTable } from "./host.ts";
import { failing } from "./linux-errors.ts";
import type { Probes } from "./linux-probes.ts";
import type { Tools } from "./linux-programs.ts";

/** What is on a device, how it gets a filesystem, and how that is checked: section 23. */

const PROBE_MS_MAX = 30_000;
/** mkfs of a large device and fsck of a damaged one take minutes. */
export const FORMAT_MS_MAX = 600_000;
/** Bits of fsck's exit code: 1 is "found and corrected". */
const FSCK_UNCORRECTED = 4;

type Content =
  | { readonly kind: "blank" }
  | { readonly kind: "filesystem"; readonly type: string }
  /** Partitions, or more than one signature: never formatted. */
  | { readonly kind: "other"; readonly what: string };

interface FormatDeps {
  readonly tools: Tools;
  readonly probes: Probes;
  readonly mount: (request: MountRequest) => Promise<void>;
  readonly table: () => Promise<MountTable>;
}

export async function formatAndMount(deps: FormatDeps, request: MountRequest): Promise<void> {
  const { source, target, options } = request;
  const doing = `mount ${source} on ${target}`;
  const content = await contentOf(deps.tools, source);
  const type = request.type === "" ? typeOf(content) : request.type;
  const readOnly = options.includes("ro");
  if (content.kind === "blank") {
    if (readOnly)
      throw new HostError("Failed", `${doing}: it holds no filesystem, and ro forbids to make one`);
    await format(deps.tools, source, type);
  } else if (!readOnly && !(await isMounted(deps, source))) await check(deps.tools, source);
  try {
    await deps.mount({ ...request, type, options: [...options, "defaults"] });
  } catch (error) {
    throw mismatch(content, type, doing, error) ?? error;
  }
}

/** What it holds matters only once mounting failed: the kernel knows best what it can mount. */
function mismatch(content: Content, wanted: string, doing: string, cause: unknown): HostError | undefined {
  if (content.kind === "other")
    return new HostError("FilesystemMismatch", `${doing}: it holds ${content.what}, not ${wanted}`, {
      cause,
    });
  if (content.kind === "blank" || content.type === wanted) return undefined;
  return new HostError("FilesystemMismatch", `${doing}: it holds ${content.type}, not ${wanted}`, { cause });
}

function typeOf(content: Content): string {
  return content.kind === "filesystem" ? content.type : "ext4";
}

/** Exit 2 of blkid means nothing found, and also that the device cannot be read: so it is read first. */
export async function contentOf(tools: Tools, device: string): Promise<Content> {
  await failing(`read ${device}`, () => readStart(device));
  const { exitCode, stdout } = await tools.must(
    "blkid",
    ["-p", "-s", "TYPE", "-s", "PTTYPE", "-o", "export", device],
    { timeoutMs: PROBE_MS_MAX, ok: [2, 8], doing: `look at what ${device} holds` },
  );
  if (exitCode === 2) return { kind: "blank" };
  if (exitCode === 8) return { kind: "other", what: "more than one signature" };
  const values = new Map(
    stdout.split("\n").map((line) => [line.split("=")[0], line.slice(line.indexOf("=") + 1)]),
  );
  const type = values.get("TYPE");
  if (type !== undefined) return { kind: "filesystem", type };
  return { kind: "other", what: "unknown data, probably partitions" };
}

async function readStart(device: string): Promise<void> {
  const file = await open(device, "r");
  try {
    if (!(await file.stat()).isBlockDevice()) throw new HostError("Failed", `${device} is no block device`);
    await file.read(Buffer.alloc(4_096), 0, 4_096, 0);
  } finally {
    await file.close();
  }
}

async function format(tools: Tools, device: string, type: string): Promise<void> {
  // No reserved blocks: nobody but the pod uses it.
  const args = type.startsWith("ext") ? ["-F", "-m0", device] : type === "xfs" ? ["-f", device] : [device];
  await tools.must(`mkfs.${type}`, args, {
    timeoutMs: FORMAT_MS_MAX,
    doing: `make a ${type} filesystem on ${device}`,
  });
}

/** Other bits than "uncorrected" are the tool's own trouble; whether it can be mounted will show. */
async function check(tools: Tools, device: string): Promise<void> {
  if (!tools.isInstalled("fsck")) return;
  const { exitCode } = await tools.run("fsck", ["-a", device], { timeoutMs: FORMAT_MS_MAX });
  if ((exitCode & FSCK_UNCORRECTED) !== 0)
    throw new HostError(
      "Failed",
      `check ${device}: fsck found errors it could not correct; repair it by hand`,
    );
}

/** A filesystem in use is never checked: fsck reads behind the kernel's back. */
async function isMounted({ probes, table }: FormatDeps, device: string): Promise<boolean> {
  const found = (await probes.ask({
    action: "statTarget",
    path: device,
    doing: `look at ${device}`,
  })) as FileStat;
  return (await table()).points.some(({ deviceNumber }) => deviceNumber === found.deviceNumber);
}
