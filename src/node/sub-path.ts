import { HostError } from "./host.ts";

/**
 * A path inside a volume, whose content belongs to a container that may be hostile. Steps are taken one at a time from
 * a directory that is already held, a link is never followed by the kernel, and `..` only leads back along the steps
 * taken. So whatever the container swaps meanwhile, the walk stays below its root.
 */

/** As the kernel: more links than this are a loop. */
const LINKS_MAX = 40;

/** What a pod's `subPath` may be: relative and without `..`. */
function subPathSteps(subPath: string): readonly string[] {
  const steps = subPath.split("/").filter((step) => step !== "" && step !== ".");
  if (subPath.startsWith("/") || steps.includes("..") || subPath.includes("\0"))
    throw new HostError("Outside", `subPath "${subPath}" must be relative and without ".."`);
  return steps;
}

/** One step the walk has to take: into an entry, or back to the directory before. */
type SubPathStep = { readonly kind: "enter"; readonly name: string } | { readonly kind: "back" };

interface SubPathWalk {
  /** Undefined at the end. */
  next(): SubPathStep | undefined;
  /** What was entered is a link: its target is walked instead, as long as it stays inside. */
  link(target: string): void;
}

export function createSubPathWalk(subPath: string): SubPathWalk {
  let ahead: readonly string[] = subPathSteps(subPath);
  let links = 0;
  let depth = 0;
  return {
    next() {
      const [step, ...rest] = ahead;
      ahead = rest;
      if (step === undefined) return undefined;
      if (step !== "..") {
        depth++;
        return { kind: "enter", name: step };
      }
      if (--depth < 0) throw new HostError("Outside", `subPath "${subPath}" leads out of its volume`);
      return { kind: "back" };
    },
    link(target) {
      if (target.startsWith("/"))
        throw new HostError("Outside", `subPath "${subPath}" leads through a link to ${target}`);
      if (++links > LINKS_MAX) throw new HostError("Outside", `subPath "${subPath}" is a loop of links`);
      depth--;
      ahead = [...target.split("/").filter((step) => step !== "" && step !== "."), ...ahead];
    },
  };
}
