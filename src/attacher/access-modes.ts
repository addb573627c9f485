import { AttacherError } from "./errors.ts";

/** CSI's names; `csi-driver.ts` knows their numbers. */
export type AccessMode =
  | "SINGLE_NODE_WRITER"
  | "MULTI_NODE_READER_ONLY"
  | "MULTI_NODE_MULTI_WRITER"
  | "SINGLE_NODE_SINGLE_WRITER"
  | "SINGLE_NODE_MULTI_WRITER";

/**
 * Kubernetes has a set of modes a volume, CSI has one. A set that CSI cannot say is an error: guessing would give a
 * writer more, or a reader less, than was asked for.
 */
export function toAccessMode(
  modes: readonly string[],
  { singleNodeMultiWriter }: { readonly singleNodeMultiWriter: boolean },
): AccessMode {
  const set = new Set(modes);
  const [many, reads, once, oncePod] = [
    set.has("ReadWriteMany"),
    set.has("ReadOnlyMany"),
    set.has("ReadWriteOnce"),
    set.has("ReadWriteOncePod"),
  ];
  if (oncePod) {
    if (set.size > 1) throw impossible(modes, "ReadWriteOncePod allows no other mode beside it");
    return singleNodeMultiWriter ? "SINGLE_NODE_SINGLE_WRITER" : "SINGLE_NODE_WRITER";
  }
  if (many) return "MULTI_NODE_MULTI_WRITER";
  if (reads && once) {
    throw impossible(modes, "CSI has no mode for many readers and one writer; keep one of the two");
  }
  if (reads) return "MULTI_NODE_READER_ONLY";
  if (once) return singleNodeMultiWriter ? "SINGLE_NODE_MULTI_WRITER" : "SINGLE_NODE_WRITER";
  throw impossible(modes, "none of them is one that CSI knows");
}

function impossible(modes: readonly string[], why: string): AttacherError {
  return new AttacherError("BadAccessModes", `access modes [${modes.join(", ")}]: ${why}`);
}
