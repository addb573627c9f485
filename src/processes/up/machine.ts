import type { Host } from "../../driver/host.ts";
import { ProcessError } from "../errors.ts";
import { mountObstacle, type MountFacts } from "../mount-rights.ts";

export type NodeMode = "auto" | "real" | "simulated";

/** Whether nodes mount for real, and where they do not, why. */
export type Machine = { readonly real: true } | { readonly real: false; readonly why: string };

export interface MachineFacts extends MountFacts {
  /** A program without which nothing can be mounted. */
  readonly missingTool: string | undefined;
}

/** Pure. What was asked for by name and cannot be had is an error that says what is missing. */
export function chooseMachine(mode: NodeMode, facts: MachineFacts): Machine {
  if (mode === "simulated") return { real: false, why: "asked for by --node-mode" };
  const why = obstacle(facts);
  if (why === undefined) return { real: true };
  if (mode === "auto") return { real: false, why };
  throw new ProcessError(
    "NotWorking",
    `real nodes cannot be run here: ${why}; use --node-mode simulated to do without`,
  );
}

function obstacle({ missingTool, ...facts }: MachineFacts): string | undefined {
  return mountObstacle(facts) ?? (missingTool === undefined ? undefined : `${missingTool} is not installed`);
}

/** For a pool whose volumes are made, attached and copied but never mounted: no tool for that is missed. */
export function withoutMounts(host: Host): Host {
  return { ...host, filesystems: { ...host.filesystems, missingTool: () => undefined } };
}
