import { Command, InvalidArgumentError, Option } from "commander";
import type { LogLevel } from "../../base/log.ts";
import { parseQuantity, quantityToBytes } from "../../kube/quantity.ts";
import { parseFaults, type Fault } from "../../processes/driver-flags.ts";
import type { DriverProcessOptions } from "../../processes/driver.ts";
import { parseDuration } from "../durations.ts";
import { booleanOption } from "../flags/boolean.ts";
import { httpEndpointOption, type EndpointAddress } from "../flags/http-endpoint.ts";
import { logLevelOption } from "../flags/log-level.ts";
import { parseSocket } from "../flags/socket.ts";

const HTTP_PORT = 9_809;
/** csi-sanity's rule: letters at both ends, at most 63 characters. */
const DRIVER_NAME = /^[A-Za-z](?:[A-Za-z0-9._-]{0,61}[A-Za-z])?$/;

interface DriverFlags {
  readonly endpoint: string;
  readonly drivername: string;
  readonly nodeid: string;
  readonly statedir: string;
  readonly nodes: readonly string[];
  readonly serve: "all" | "controller" | "node";
  readonly maxvolumespernode: number;
  readonly attachLimit: number;
  readonly enableAttach: boolean;
  readonly capacity: ReadonlyMap<string, bigint>;
  readonly maxVolumeSize: bigint;
  readonly maxVolumeSizeNode?: bigint;
  readonly enableTopology: boolean;
  readonly enableVolumeExpansion: boolean;
  readonly disableControllerExpansion: boolean;
  readonly disableNodeExpansion: boolean;
  readonly enableControllerModifyVolume: boolean;
  readonly acceptedMutableParameterNames?: readonly string[];
  readonly enableListSnapshots: boolean;
  readonly volumeCondition: boolean;
  readonly volumeHealth: boolean;
  readonly enableSnapshotMetadata: boolean;
  readonly snapshotMetadataBlockType: "FIXED_LENGTH" | "VARIABLE_LENGTH";
  readonly kubeletRegistrationPath?: string;
  readonly pluginRegistrationPath: string;
  readonly defaultFsType: "ext4" | "xfs";
  readonly requireSecretFile?: string;
  readonly faults: readonly Fault[];
  readonly httpEndpoint: EndpointAddress | false;
  readonly logLevel: LogLevel;
}

/** Loaded when it runs: `mooring --help` should not wait for it. */
async function run(options: DriverProcessOptions): Promise<void> {
  const { runDriver } = await import("../../processes/driver.ts");
  await runDriver(options);
}

export function driverCommand(start: (options: DriverProcessOptions) => Promise<void> = run): Command {
  const command = new Command("driver").description(
    "run the CSI driver whose volumes are loop devices on image files; needs root on Linux; logs go to stderr as JSON",
  );
  addPlaceFlags(command);
  addLimitFlags(command);
  addFeatureFlags(command);
  return command
    .addOption(httpEndpointOption(HTTP_PORT))
    .addOption(logLevelOption())
    .addHelpText(
      "after",
      `
Examples:
  mooring driver --endpoint unix:///run/loop/csi.sock --nodeid node-1 --statedir /var/lib/mooring-loop
  mooring driver --nodeid a --nodes b,c --statedir pool --endpoint /run/a.sock    three nodes share one pool,
  mooring driver --nodeid b --serve node --statedir pool --endpoint /run/b.sock   each with its node service
  mooring driver --endpoint /run/csi.sock --nodeid a --statedir pool --faults 'NodeStageVolume=slow:5s,ControllerPublishVolume=error:14@0.3'`,
    )
    .action((flags: DriverFlags) => start(toOptions(flags)));
}

function addPlaceFlags(command: Command): void {
  command
    .addOption(
      new Option("--endpoint <endpoint>", "the unix socket to serve on: unix:///path or /path")
        .env("CSI_ENDPOINT")
        .makeOptionMandatory()
        .argParser(parseSocket),
    )
    .addOption(
      new Option("--drivername <name>", "the name of the driver")
        .default("loop.csi.mooring.dev")
        .argParser(parseName),
    )
    .addOption(
      new Option("--nodeid <id>", "this machine's name among the nodes")
        .makeOptionMandatory()
        .argParser(parseNode),
    )
    .requiredOption("--statedir <dir>", "where images and records are; a real filesystem, not an overlay")
    .addOption(
      new Option("--nodes <ids>", "other nodes that share this pool, separated by commas")
        .default([], "none")
        .argParser(parseNames),
    )
    .addOption(
      new Option(
        "--kubelet-registration-path <socket>",
        "the path of --endpoint as kubelet sees it; given, the driver registers itself",
      ).argParser(parseSocket),
    )
    .option(
      "--plugin-registration-path <dir>",
      "where registration sockets are, as this process sees it; only with --kubelet-registration-path",
      "/registration",
    )
    .addOption(
      new Option("--serve <services>", "which services this process answers")
        .choices(["all", "controller", "node"])
        .default("all"),
    );
}

function addLimitFlags(command: Command): void {
  command
    .addOption(
      new Option("--maxvolumespernode <n>", "older name of --attach-limit").default(0).argParser(parseCount),
    )
    .addOption(
      new Option(
        "--attach-limit <n>",
        "volumes a node may hold; 0 for no limit, -1 for a random one of 1 to 10",
      )
        .default(0)
        .argParser(parseCount),
    )
    .addOption(
      new Option(
        "--capacity <kind=quantity>",
        "a simulated pool, chosen by the parameter kind; may be repeated",
      )
        .default(new Map(), "none")
        .argParser(parseCapacity),
    )
    .addOption(
      new Option("--max-volume-size <quantity>", "the largest volume")
        .default(1n << 40n, "1Ti")
        .argParser(parseBytes),
    )
    .addOption(
      new Option(
        "--max-volume-size-node <quantity>",
        "the largest that a node grows to; --max-volume-size if not given",
      ).argParser(parseBytes),
    );
}

function addFeatureFlags(command: Command): void {
  const feature = (name: string, description: string, fallback: boolean) =>
    command.addOption(booleanOption(name, description, fallback));
  feature("enable-attach", "offer ControllerPublishVolume, and want it before NodeStageVolume", true);
  feature("enable-topology", "volumes say which nodes reach them", true);
  feature("enable-volume-expansion", "volumes grow", true);
  feature("disable-controller-expansion", "leave growth to the node", false);
  feature("disable-node-expansion", "leave growth to the next stage", false);
  feature("enable-controller-modify-volume", "offer ControllerModifyVolume", false);
  feature("enable-list-snapshots", "offer ListSnapshots", true);
  feature("volume-condition", "report the health of volumes", true);
  feature("volume-health", "offer the health calls that come after CSI 1.12", false);
  feature("enable-snapshot-metadata", "offer lists of the blocks of raw snapshots", false);
  command
    .addOption(
      new Option(
        "--accepted-mutable-parameter-names <names>",
        "keys that can be modified; all if not given",
      ).argParser(parseNames),
    )
    .addOption(
      new Option("--snapshot-metadata-block-type <type>", "blocks of 4096 bytes each, or ranges of them")
        .choices(["FIXED_LENGTH", "VARIABLE_LENGTH"])
        .default("FIXED_LENGTH"),
    )
    .addOption(
      new Option("--default-fs-type <type>", "what is made where nobody names one")
        .choices(["ext4", "xfs"])
        .default("ext4"),
    )
    .option(
      "--require-secret-file <file>",
      "refuse calls without this file's text among their secrets (for tests)",
    )
    .addOption(
      new Option("--faults <list>", "misbehave on purpose, e.g. NodeStageVolume=slow:5s (for tests)")
        .default([], "none")
        .argParser(parseFaultList),
    );
}

function toOptions(flags: DriverFlags): DriverProcessOptions {
  const grows = flags.enableVolumeExpansion;
  return {
    name: flags.drivername,
    socketPath: flags.endpoint,
    stateDir: flags.statedir,
    nodeId: flags.nodeid,
    nodes: flags.nodes,
    serves: flags.serve,
    attach: flags.enableAttach,
    attachLimit: flags.attachLimit === 0 ? flags.maxvolumespernode : flags.attachLimit,
    capacity: flags.capacity,
    maxVolumeBytes: flags.maxVolumeSize,
    maxVolumeBytesNode: flags.maxVolumeSizeNode ?? flags.maxVolumeSize,
    topology: flags.enableTopology,
    controllerExpansion: grows && !flags.disableControllerExpansion,
    nodeExpansion: grows && !flags.disableNodeExpansion,
    modifyVolume: flags.enableControllerModifyVolume,
    mutableParameterNames: flags.acceptedMutableParameterNames,
    listSnapshots: flags.enableListSnapshots,
    volumeCondition: flags.volumeCondition,
    volumeHealth: flags.volumeHealth,
    snapshotMetadata: flags.enableSnapshotMetadata,
    snapshotMetadataBlockType: flags.snapshotMetadataBlockType,
    kubeletRegistrationPath: flags.kubeletRegistrationPath,
    pluginRegistrationPath: flags.pluginRegistrationPath,
    defaultFsType: flags.defaultFsType,
    requireSecretFile: flags.requireSecretFile,
    faults: flags.faults,
    httpEndpoint: flags.httpEndpoint === false ? undefined : flags.httpEndpoint,
    logLevel: flags.logLevel,
  };
}

function parseName(text: string): string {
  if (DRIVER_NAME.test(text)) return text;
  throw new InvalidArgumentError("Letters at both ends; letters, digits, - . _ between; at most 63 in all.");
}

/** What the protocol allows. */
function parseNode(text: string): string {
  if (text !== "" && Buffer.byteLength(text) <= 256) return text;
  throw new InvalidArgumentError("Give 1 to 256 bytes.");
}

const parseNames = (text: string) => text.split(",").filter((name) => name !== "");

function parseCount(text: string): number {
  if (/^(?:-1|\d{1,6})$/.test(text)) return Number(text);
  throw new InvalidArgumentError("Give a whole number, or -1.");
}

function parseBytes(text: string): bigint {
  try {
    const bytes = quantityToBytes(parseQuantity(text));
    if (bytes > 0n) return bytes;
  } catch {
    // Said below, with an example.
  }
  throw new InvalidArgumentError("Give a quantity above zero, such as 10Gi.");
}

function parseCapacity(text: string, before: ReadonlyMap<string, bigint>): ReadonlyMap<string, bigint> {
  const match = /^([A-Za-z0-9._-]+)=(.+)$/.exec(text);
  if (match?.[1] === undefined || match[2] === undefined) {
    throw new InvalidArgumentError("Give KIND=QUANTITY, such as fast=100Gi.");
  }
  return new Map([...before, [match[1], parseBytes(match[2])]]);
}

function parseFaultList(text: string): readonly Fault[] {
  const faults = parseFaults(text, parseDuration);
  if (typeof faults === "string") throw new InvalidArgumentError(faults);
  return faults;
}
