import type { MountPoint, MountTable } from "./host.ts";

/** A line of the table, with what only the making of shared mounts asks for. */
export interface MountLine extends MountPoint {
  /** Member of a peer group: what is mounted below it appears at its peers. */
  readonly shared: boolean;
}

/** `36 35 7:3 / /mnt rw,noatime shared:1 - ext4 /dev/loop3 rw`; blanks and the like are octal escapes. */
export function parseMountInfo(text: string): readonly MountLine[] {
  return text.split("\n").flatMap((line) => toMountLine(line) ?? []);
}

function toMountLine(line: string): MountLine | undefined {
  // No field holds a blank, so that " - " can only be the end of the optional fields.
  const cut = line.indexOf(" - ");
  if (cut < 0) return undefined;
  const [, , deviceNumber, root, path, options, ...optional] = line.slice(0, cut).split(" ");
  const [type, source, superOptions] = line.slice(cut + 3).split(" ");
  if (deviceNumber === undefined || root === undefined || path === undefined || type === undefined)
    return undefined;
  return {
    path: unescapeOctal(path),
    deviceNumber,
    root: unescapeOctal(root),
    type,
    source: unescapeOctal(source ?? ""),
    options: mergeOptions(options ?? "", superOptions ?? ""),
    shared: optional.some((field) => field.startsWith("shared:")),
  };
}

/** Whether this mount may be written to is the mount's own answer: `rw` of the filesystem below says less than its `ro`. */
function mergeOptions(ofMount: string, ofFilesystem: string): readonly string[] {
  const own = ofMount.split(",").filter((option) => option !== "");
  const below = ofFilesystem.split(",").filter((option) => option !== "" && option !== "rw");
  const readOnly = own.includes("ro") || below.includes("ro");
  const rest = [...own, ...below].filter((option) => option !== "rw" && option !== "ro");
  return [...new Set([readOnly ? "ro" : "rw", ...rest])];
}

/** The kernel writes blank, tab, newline, backslash and `#` as three octal digits, one a byte: the rest is UTF-8 already. */
function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(parseInt(octal, 8)));
}

export function createMountTable(points: readonly MountPoint[]): MountTable {
  const byPath = new Map(points.map((point) => [point.path, point]));
  return {
    points,
    at: (path) => byPath.get(path),
    below: (path) => points.filter((point) => isAtOrBelow(point.path, path)),
    references(path) {
      const here = byPath.get(path);
      if (here === undefined) return [];
      const same = points.filter(
        (point) =>
          point.path !== path && point.deviceNumber === here.deviceNumber && point.root === here.root,
      );
      return [...new Set(same.map((point) => point.path))];
    },
  };
}

/** The mount a path lies on: the longest, and of two at one path the later. */
export function mountContaining<T extends MountPoint>(points: readonly T[], path: string): T | undefined {
  return points.reduce<T | undefined>(
    (best, point) =>
      isAtOrBelow(path, point.path) && point.path.length >= (best?.path.length ?? 0) ? point : best,
    undefined,
  );
}

export function isAtOrBelow(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory.endsWith("/") ? directory : `${directory}/`);
}
