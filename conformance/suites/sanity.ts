import { execFile } from "node:child_process";
import { access, writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import { startMooring } from "../harness/mooring.ts";
import type { Performance } from "./suite.ts";

const run = promisify(execFile);
const RUN_MS_MAX = 600_000;

/** The driver on real loop devices under the specification's own tests. */
export async function sanity({ stage, binaries }: Performance): Promise<string> {
  const programs = await binaries.need("csi-sanity");
  const socket = stage.path("csi.sock");
  const state = await stage.folder("driver");
  startMooring(stage, "driver", [
    `--endpoint=unix://${socket}`,
    "--nodeid=node-a",
    `--statedir=${state}`,
    "--http-endpoint=",
    "--enable-controller-modify-volume",
    "--accepted-mutable-parameter-names=iops",
  ]);
  const mutable = stage.path("mutable.yaml");
  await writeFile(mutable, 'iops: "1000"\n');
  await stage.until("socket of the driver", 60_000, () => access(socket).then(() => true));
  const flags = [
    `--csi.endpoint=${socket}`,
    `--csi.mountdir=${stage.path("mount")}`,
    `--csi.stagingdir=${stage.path("staging")}`,
    `--csi.testvolumemutableparameters=${mutable}`,
    "--ginkgo.no-color",
  ];
  const { stdout } = await run(programs["csi-sanity"] ?? "", flags, {
    timeout: RUN_MS_MAX,
    signal: stage.signal,
    maxBuffer: 64 * 2 ** 20,
  }).catch((error: unknown) => {
    throw new Error(failures((error as { stdout?: string }).stdout ?? String(error)));
  });
  return verdict(stdout);
}

/** `Ran 85 of 92 Specs`, `85 Passed | 0 Failed | 1 Pending | 6 Skipped`. */
function verdict(output: string): string {
  return /(\d+ Passed \| \d+ Failed \| \d+ Pending \| \d+ Skipped)/.exec(output)?.[1] ?? "no verdict";
}

function failures(output: string): string {
  const named = [...output.matchAll(/^\s*\[FAIL\] (.*)$/gm)].map(([, name]) => name);
  return `${verdict(output)}: ${[...new Set(named)].slice(0, 5).join("; ")}`;
}
