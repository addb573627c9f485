import { Command, InvalidArgumentError, Option } from "commander";
import type { LogLevel } from "../../base/log.ts";
import type { AttacherProcessOptions } from "../../processes/attacher.ts";
import type { LogFormat } from "../../processes/text-log.ts";
import { productVersion } from "../../processes/product.ts";
import { durationOption, formatDuration } from "../durations.ts";
import { booleanOption } from "../flags/boolean.ts";
import { addClientFlags, checkClientFlags, type ClientFlags } from "../flags/client.ts";
import { featureGatesOption, type FeatureGates } from "../flags/feature-gates.ts";
import { parseHttpEndpoint, type EndpointAddress } from "../flags/http-endpoint.ts";
import { logLevelOption } from "../flags/log-level.ts";
import { goFlags } from "../flags/go-flags.ts";

/** Upstream's gates for this process. */
const GATES = { MutableCSINodeAllocatableCount: true, ReleaseLeaderElectionOnExit: false };

interface AttacherFlags extends ClientFlags {
  readonly csiAddress: readonly string[];
  readonly resync: number;
  readonly timeout: number;
  readonly workerThreads: number;
  readonly retryIntervalStart: number;
  readonly retryIntervalMax: number;
  readonly maxEntries: number;
  readonly reconcileSync: number;
  readonly defaultFstype: string;
  readonly leaderElection: boolean;
  readonly leaderElectionNamespace: string;
  readonly leaderElectionLeaseDuration: number;
  readonly leaderElectionRenewDeadline: number;
  readonly leaderElectionRetryPeriod: number;
  readonly leaderElectionLabels: Readonly<Record<string, string>>;
  readonly httpEndpoint: EndpointAddress | false;
  readonly metricsAddress: EndpointAddress | false;
  readonly metricsPath: string;
  readonly featureGates: FeatureGates<keyof typeof GATES>;
  readonly logLevel: LogLevel;
  readonly v?: number;
  readonly loggingFormat: LogFormat;
  readonly maxGrpcLogLength: number;
  readonly singleNodeGuard: boolean;
}

/** Loaded when it runs: `mooring --help` should not wait for it. */
async function run(options: AttacherProcessOptions): Promise<void> {
  const { runAttacher } = await import("../../processes/attacher.ts");
  await runAttacher(options);
}

export function attacherCommand(start: (options: AttacherProcessOptions) => Promise<void> = run): Command {
  const command = goFlags(new Command("attacher")).description(
    "attach volumes through a CSI driver, instead of the external-attacher sidecar; logs go to stderr as JSON",
  );
  addClientFlags(command);
  addDriverFlags(command);
  addLeaderElectionFlags(command);
  addEndpointFlags(command);
  addGoFlags(command);
  return command
    .addHelpText(
      "after",
      `
Flags have the names of external-attacher's; -flag and --flag are the same.

Examples:
  mooring attacher --csi-address /csi/csi.sock --leader-election --http-endpoint :8080
  mooring attacher --csi-address unix:///run/a.sock --csi-address unix:///run/b.sock --kubeconfig FILE`,
    )
    .action((flags: AttacherFlags) => start(toOptions(command, flags)));
}

function addDriverFlags(command: Command): void {
  const duration = (name: string, description: string, defaultMs: number, minMs = 1) =>
    command.addOption(durationOption(name, description, { defaultMs, minMs, why: "it is a time to wait" }));
  command.addOption(
    new Option("--csi-address <socket>", "socket of the driver; may be given several times, one driver each")
      .default([], "/run/csi/socket")
      .argParser((text, before: readonly string[]) => [...before, text]),
  );
  duration("resync", "how often every cached object is looked at again", 600_000);
  duration("timeout", "of each call to the driver, and of one walk over its list of volumes", 15_000);
  command.addOption(
    new Option("--worker-threads <number>", "operations at once, attaches and detaches together")
      .default(10)
      .argParser((text) => parseCount(text, 1)),
  );
  duration("retry-interval-start", "before the first retry; doubled for each one after", 1_000);
  duration("retry-interval-max", "between two retries at most", 300_000);
  command.addOption(
    new Option("--max-entries <number>", "volumes a page of the driver's list; 0 for no limit")
      .default(0)
      .argParser((text) => parseCount(text, 0)),
  );
  duration("reconcile-sync", "between two comparisons with the driver's list of volumes", 60_000);
  command.addOption(
    new Option("--default-fstype <type>", "filesystem of volumes that name none").default("", "none"),
  );
  command.addOption(
    booleanOption(
      "single-node-guard",
      "refuse a ReadWriteOnce or ReadWriteOncePod volume to a second node while another may have it",
      true,
    ),
  );
}

function addLeaderElectionFlags(command: Command): void {
  const duration = (name: string, description: string, defaultMs: number) =>
    command.addOption(
      durationOption(`leader-election-${name}`, description, {
        defaultMs,
        minMs: 1,
        why: "it is a time to wait",
      }),
    );
  command
    .addOption(
      booleanOption(
        "leader-election",
        "hold a Lease before acting, so that only one of several replicas does",
        false,
      ),
    )
    .addOption(
      new Option("--leader-election-namespace <namespace>", "namespace of the Lease").default(
        "",
        "that of the pod, or default",
      ),
    );
  duration("lease-duration", "how long others wait for a leader that went silent", 15_000);
  duration("renew-deadline", "how long a leader acts without a renewal that succeeded", 10_000);
  duration("retry-period", "between two attempts to get or renew the Lease", 5_000);
  command.addOption(
    new Option(
      "--leader-election-labels <labels>",
      "put on the Lease by whoever leads: key:value,key2:value2",
    )
      .default({}, "none")
      .argParser(parseLabels),
  );
}

function addEndpointFlags(command: Command): void {
  command
    .addOption(
      new Option("--http-endpoint <host:port>", "where metrics and health are served; without it, nowhere")
        .default(false, "none")
        .argParser(parseHttpEndpoint),
    )
    .addOption(
      new Option("--metrics-address <host:port>", "deprecated: metrics only; use --http-endpoint")
        .default(false, "none")
        .argParser(parseHttpEndpoint),
    )
    .option("--metrics-path <path>", "where metrics are below either of them", "/metrics");
}

/** What upstream's program takes and manifests therefore contain. */
function addGoFlags(command: Command): void {
  command
    .addOption(featureGatesOption(GATES))
    .addOption(logLevelOption())
    .addOption(
      new Option(
        "-v, --v <number>",
        "verbosity as upstream counts it: 4 and more is --log-level=debug, 5 and more logs every call to the driver",
      ).argParser((text) => parseCount(text, 0)),
    )
    .addOption(
      new Option("--logging-format <format>", "of the lines on stderr")
        .choices(["json", "text"] satisfies LogFormat[])
        .default("json" satisfies LogFormat),
    )
    .addOption(
      new Option(
        "--max-grpc-log-length <number>",
        "characters of an answer in the log; 0 and less: all of it",
      )
        .default(-1)
        .argParser(parseLength),
    )
    .addOption(booleanOption("automaxprocs", "accepted; only the Go runtime has use for it", false))
    .version(productVersion(), "--version", "print the version and end");
}

function toOptions(command: Command, flags: AttacherFlags): AttacherProcessOptions {
  checkClientFlags(command, flags);
  checkTogether(command, flags);
  const endpoint = flags.httpEndpoint || flags.metricsAddress;
  return {
    csiAddresses: flags.csiAddress.length === 0 ? ["/run/csi/socket"] : flags.csiAddress,
    kubeconfig: flags.kubeconfig || undefined,
    qps: flags.kubeApiQps,
    burst: flags.kubeApiBurst,
    resyncMs: flags.resync,
    timeoutMs: flags.timeout,
    workers: flags.workerThreads,
    retryInitialMs: flags.retryIntervalStart,
    retryMaxMs: flags.retryIntervalMax,
    maxEntries: flags.maxEntries,
    reconcileSyncMs: flags.reconcileSync,
    defaultFsType: flags.defaultFstype,
    singleNodeGuard: flags.singleNodeGuard,
    errorCodes: flags.featureGates.MutableCSINodeAllocatableCount,
    leaderElection: {
      enabled: flags.leaderElection,
      namespace: flags.leaderElectionNamespace || undefined,
      leaseDurationMs: flags.leaderElectionLeaseDuration,
      renewDeadlineMs: flags.leaderElectionRenewDeadline,
      retryPeriodMs: flags.leaderElectionRetryPeriod,
      labels: flags.leaderElectionLabels,
    },
    httpEndpoint: endpoint === false ? undefined : endpoint,
    metricsPath: flags.metricsPath,
    logLevel: flags.v !== undefined && flags.v >= 4 ? "debug" : flags.logLevel,
    logFormat: flags.loggingFormat,
    logCalls: flags.v !== undefined && flags.v >= 5,
    answerCharsMax: flags.maxGrpcLogLength,
  };
}

function checkTogether(command: Command, flags: AttacherFlags): void {
  if (flags.httpEndpoint !== false && flags.metricsAddress !== false) {
    command.error("error: --http-endpoint and --metrics-address are both given; give --http-endpoint alone");
  }
  if (!flags.leaderElection) return;
  const { leaderElectionLeaseDuration: lease, leaderElectionRenewDeadline: renew } = flags;
  const { leaderElectionRetryPeriod: retry } = flags;
  if (lease <= renew) {
    command.error(
      `error: --leader-election-lease-duration ${formatDuration(lease)} must be longer than --leader-election-renew-deadline ${formatDuration(renew)}, or two would act at once`,
    );
  }
  if (renew <= 1.2 * retry) {
    command.error(
      `error: --leader-election-renew-deadline ${formatDuration(renew)} must be longer than 1.2 times --leader-election-retry-period ${formatDuration(retry)}`,
    );
  }
}

function parseCount(text: string, min: number): number {
  const value = /^\d{1,7}$/.test(text) ? Number(text) : NaN;
  if (value >= min) return value;
  throw new InvalidArgumentError(`Give a whole number from ${min} up.`);
}

function parseLength(text: string): number {
  if (/^-?\d{1,9}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("Give a whole number.");
}

function parseLabels(text: string): Readonly<Record<string, string>> {
  const items = text.split(",").filter((item) => item.trim() !== "");
  return Object.fromEntries(
    items.map((item) => {
      const parts = item.split(":").map((part) => part.trim());
      if (parts.length !== 2)
        throw new InvalidArgumentError("Give key:value, several of them with commas between.");
      return parts;
    }),
  ) as Record<string, string>;
}
