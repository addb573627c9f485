import { readFile } from "node:fs/promises";
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
  const content = await contentOf(deps, source);
  const type = request.type === "" ? typeOf(content) : request.type;
  const readOnly = options.includes("ro");
  if (content.kind === "blank") {
    if (request.mayFormat === false)
      throw new HostError(
        "Failed",
        `${doing}: it seems blank, but held a filesystem when it was mounted here before; nothing is formatted`,
      );
    if (readOnly)
      throw new HostError("Failed", `${doing}: it holds no filesystem, and ro forbids to make one`);
    await format(deps.tools, source, type);
  } else if (content.kind === "other" && content.what.startsWith("data at"))
    throw new HostError(
      "Failed",
      `${doing}: it holds ${content.what}, so it is neither mounted nor formatted; to have it formatted, blank it first (blkdiscard --zeroout ${source})`,
    );
  else if (!readOnly && !(await isMounted(deps, source))) await check(deps.tools, source);
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

/**
 * Exit 2 of blkid means nothing found, and also that something could not be read. What is formatted is lost, so a disk is
 * blank only where it was read, every byte of what was asked for arrived, and all of them are zero (or all are 0xff, as
 * erased flash reads): all of a disk up to 1 GiB; of a larger one its first and last 64 MiB, where every filesystem,
 * volume manager and partition table begins or ends, and 64 places of 1 MiB between. A disk that reads otherwise and
 * carries no signature holds somebody's raw data, or a filesystem whose head is damaged.
 */
export async function contentOf(
  deps: Pick<FormatDeps, "tools" | "probes">,
  device: string,
): Promise<Content> {
  const { exitCode, stdout } = await deps.tools.must(
    "blkid",
    ["-p", "-s", "TYPE", "-s", "PTTYPE", "-o", "export", device],
    { timeoutMs: PROBE_MS_MAX, ok: [2, 8], doing: `look at what ${device} holds` },
  );
  if (exitCode === 2) return readBlank(deps, device);
  if (exitCode === 8) return { kind: "other", what: "more than one signature" };
  const values = new Map(
    stdout.split("\n").map((line) => [line.split("=")[0], line.slice(line.indexOf("=") + 1)]),
  );
  const type = values.get("TYPE");
  if (type !== undefined) return { kind: "filesystem", type };
  return { kind: "other", what: "unknown data, probably partitions" };
}

/** In a process that can be killed: a read of a dead disk hangs. */
async function readBlank({ probes }: Pick<FormatDeps, "probes">, device: string): Promise<Content> {
  const doing = `read ${device} to see that it is blank`;
  const found = (await probes.ask({ action: "statTarget", path: device, doing })) as FileStat;
  if (found.kind !== "block") throw new HostError("Failed", `${doing}: it is no block device`);
  const sectors = await failing(doing, () => readFile(`/sys/dev/block/${found.deviceNumber}/size`, "utf8"));
  const ranges = placesToRead(512 * Number(sectors.trim()));
  const { dataAt } = (await probes.walk({ action: "readRanges", path: device, args: { ranges }, doing })) as {
    dataAt: number | null;
  };
  if (dataAt === null) return { kind: "blank" };
  return { kind: "other", what: `data at byte ${dataAt} without any known signature` };
}

const MIB = 1 << 20;
const WHOLE_MAX = 1_024 * MIB;
const ENDS = 64 * MIB;
const PLACES = 64;

/** Pairs of offset and length, in order, none twice. */
export function placesToRead(sizeBytes: number): readonly (readonly [number, number])[] {
  if (sizeBytes <= 0) throw new HostError("Failed", "the disk has no size; nothing of it can be read");
  if (sizeBytes <= WHOLE_MAX) return [[0, sizeBytes]];
  const step = (sizeBytes - 2 * ENDS) / (PLACES + 1);
  const between = Array.from({ length: PLACES }, (_, n) => {
    return [ENDS + MIB * Math.floor((step * (n + 1)) / MIB), MIB] as const;
  });
  return [[0, ENDS], ...between, [sizeBytes - ENDS, ENDS]];
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
