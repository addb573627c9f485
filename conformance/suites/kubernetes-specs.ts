import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { createEstate } from "../../bench/attach-detach/estate.ts";
import { ATTACH_DETACH, startController } from "../harness/cast.ts";
import { startControlPlane } from "../harness/control-plane.ts";
import { builderOf } from "../harness/fleet.ts";
import type { Performance } from "./suite.ts";

const run = promisify(execFile);
const RUN_MS_MAX = 300_000;

/**
 * Life cycles of the objects that our controller reads and writes. Whoever deletes or changes an object that it did not
 * make fails them: the VolumeAttachments of these specs have names of their own and belong to a PersistentVolume that is there.
 */
const FOCUS = String.raw`\[sig-storage\] (VolumeAttachment|CSINodes?|PersistentVolumes|StorageClasses) `;

/** Kubernetes' own conformance specs beside our controller, on a real API server. */
export async function kubernetesSpecs({ stage, binaries }: Performance): Promise<string> {
  const programs = await binaries.need("etcd", "kube-apiserver", "kube-controller-manager", "e2e.test");
  const plane = await startControlPlane(stage, binaries);
  try {
    // No machine is behind the node that the suite wants to see: its controller would call it dead after 50 s.
    await plane.startManager(`*,-${ATTACH_DETACH},-node-lifecycle-controller`);
    startController(stage, plane.kubeconfig);
    await createEstate(builderOf(plane.api), { name: "specs", nodes: 1, volumes: 0 });
    const { stdout } = await run(
      programs["e2e.test"] ?? "",
      [
        `--kubeconfig=${plane.kubeconfig}`,
        "--provider=local",
        // No pod has to run before the first spec.
        "--allowed-not-ready-nodes=-1",
        `--ginkgo.focus=${FOCUS}`,
        "--ginkgo.label-filter=Conformance",
        "--ginkgo.no-color",
      ],
      { cwd: stage.directory, timeout: RUN_MS_MAX, signal: stage.signal, maxBuffer: 64 * 2 ** 20 },
    ).catch((error: unknown) => {
      throw new Error(failures((error as { stdout?: string }).stdout ?? String(error)));
    });
    return verdict(stdout);
  } finally {
    await plane.close();
  }
}

/** `Ran 5 of 7432 Specs in 12.3 seconds`, `5 Passed | 0 Failed | ...`; a run of no spec at all has proved nothing. */
function verdict(output: string): string {
  const ran = Number(/Ran (\d+) of \d+ Specs/.exec(output)?.[1] ?? 0);
  if (ran === 0) throw new Error("no spec was run: the suite names its specs differently in this version");
  return /(\d+ Passed \| \d+ Failed)/.exec(output)?.[1] ?? "no verdict";
}

function failures(output: string): string {
  const named = [...output.matchAll(/^\s*\[FAIL\] (.*)$/gm)].map(([, name]) => name);
  return named.length === 0 ? output.slice(-600) : [...new Set(named)].slice(0, 5).join("; ");
}
