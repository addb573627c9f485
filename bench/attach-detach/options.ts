import { accessSync, constants } from "node:fs";

export const ATTACH_DETACH_OPTIONS = ["--only", "--kubeconfig", "--peer-controller"] as const;

const PARTS = ["scale", "large", "cluster"] as const;
export type Part = (typeof PARTS)[number];

export interface AttachDetachBenchOptions {
  readonly parts: readonly Part[];
  /** The API server of the part `cluster`; without it, the embedded one. */
  readonly kubeconfig: string | undefined;
  /** A kube-controller-manager, which gets the same load on the same API server. */
  readonly peer: string | undefined;
}

export function parseAttachDetach(args: readonly string[]): AttachDetachBenchOptions {
  const [only, kubeconfig, peer] = ATTACH_DETACH_OPTIONS.map((name) => {
    const at = args.indexOf(name);
    return at < 0 ? undefined : args[at + 1];
  });
  const parts = PARTS.filter((part) => only === undefined || only === part);
  if (parts.length === 0) throw new Error(`--only ${only ?? ""} is not one of ${PARTS.join(", ")}`);
  if (kubeconfig !== undefined) accessSync(kubeconfig, constants.R_OK);
  if (peer !== undefined) accessSync(peer, constants.X_OK);
  return { parts, kubeconfig, peer };
}
