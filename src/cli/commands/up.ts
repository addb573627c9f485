import { Command, InvalidArgumentError, Option } from "commander";
import { parseFaults, type Fault } from "../../processes/driver-flags.ts";
import { durationOption, parseDuration } from "../durations.ts";
import { listenOption, type ListenAddress } from "../listen.ts";
import { authorizationModeOption } from "./apiserver.ts";

export interface UpFlags {
  readonly dataDir: string;
  readonly listen: ListenAddress;
  readonly authorizationMode: "allow" | "rbac";
  readonly nodes: number;
  readonly nodeMode: "auto" | "real" | "simulated";
  readonly once?: string;
  readonly timeout: number;
  readonly flexVolumePluginDir?: string;
  readonly faults: readonly Fault[];
  readonly verbose?: boolean;
}

/** Loaded when it runs: `mooring --help` should not wait for TLS and metrics libraries. */
async function run(flags: UpFlags): Promise<void> {
  const { runUp } = await import("./up-run.ts");
  await runUp(flags);
}

export function upCommand(start: (flags: UpFlags) => Promise<void> = run): Command {
  return new Command("up")
    .description("run a cluster on this machine, in the foreground, until Ctrl-C")
    .option(
      "--data-dir <dir>",
      "where objects, volumes, certificates, the kubeconfig and the log are kept",
      "./.mooring",
    )
    .addOption(listenOption())
    .addOption(
      new Option("--nodes <count>", "nodes to run: node-1, node-2, ...").default(3).argParser(parseNodes),
    )
    .addOption(
      new Option(
        "--node-mode <mode>",
        "real: loop devices and mounts, needs root on Linux; simulated: everything but those",
      )
        .choices(["auto", "real", "simulated"])
        .default("auto"),
    )
    .option("--once <file>", "apply this file, wait until its pods are ready, say so or why not, and end")
    .addOption(
      durationOption("timeout", "how long a step of --once may take", {
        defaultMs: 60_000,
        minMs: 1,
        why: "it is a time to wait",
      }),
    )
    .option("--flex-volume-plugin-dir <dir>", "where FlexVolume drivers are; default: DIR/flexvolume")
    .addOption(
      new Option("--faults <spec>", "make the driver fail: METHOD=error:CODE@RATE, METHOD=slow:5s, ...")
        .default([], "none")
        .argParser(toFaults),
    )
    .addOption(authorizationModeOption())
    .option("--verbose", "write logs to stderr instead of DIR/mooring.log")
    .addHelpText(
      "after",
      `
Examples:
  mooring up
  mooring up --data-dir /tmp/demo --listen 127.0.0.1:0 --nodes 1
  mooring up --once examples/claim-and-pod.yaml
  mooring up --once broken.yaml --timeout 20s --faults 'NodeStageVolume=error:13'
  kubectl --kubeconfig .mooring/admin.kubeconfig get pods,pvc,nodes`,
    )
    .action((flags: UpFlags) => start(flags));
}

/** A laptop is full of nodes long before; each costs a few megabytes and watches of its own. */
const NODES_MAX = 50;

function parseNodes(text: string): number {
  const count = Number(text);
  if (!/^\d+$/.test(text) || count < 1 || count > NODES_MAX)
    throw new InvalidArgumentError(`Give a number from 1 to ${NODES_MAX}.`);
  return count;
}

function toFaults(text: string): readonly Fault[] {
  const faults = parseFaults(text, parseDuration);
  if (typeof faults === "string") throw new InvalidArgumentError(faults);
  return faults;
}
