import type { FileKind } from "./host.ts";

/** Section 20 of the specification: what fsGroup makes of a file's mode. Pure, so that real and simulated host agree. */

const SETGID = 0o2000;

interface Ownership {
  readonly kind: FileKind;
  readonly mode: number;
  readonly gid: number;
}

/** A link has no mode of its own. */
export function groupMode(
  { kind, mode }: Omit<Ownership, "gid">,
  { readOnly }: { readonly readOnly: boolean },
): number {
  if (kind === "symlink") return mode;
  const forFile = mode | (readOnly ? 0o440 : 0o660);
  return kind === "directory" ? forFile | 0o110 | SETGID : forFile;
}

/** Whether the root of a volume says that its group was applied before. */
export function hasGroup(
  root: Ownership,
  { gid, readOnly }: { readonly gid: number; readonly readOnly: boolean },
): boolean {
  const needed = (readOnly ? 0o550 : 0o770) | SETGID;
  return root.kind === "directory" && root.gid === gid && (root.mode & needed) === needed;
}
