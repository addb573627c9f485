import type { Command } from "commander";
import { durationOption, formatDuration } from "../durations.ts";
import { booleanOption } from "./boolean.ts";

/** Upstream's flags of leader election; the same for every process that has replicas. */
export interface LeaderElectionFlags {
  readonly leaderElect: boolean;
  readonly leaderElectLeaseDuration: number;
  readonly leaderElectRenewDeadline: number;
  readonly leaderElectRetryPeriod: number;
  readonly leaderElectResourceName: string;
  readonly leaderElectResourceNamespace: string;
}

/** What a process takes of them. */
export interface LeaderElectionChoice {
  readonly enabled: boolean;
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
  readonly resourceName: string;
  readonly resourceNamespace: string;
}

export function addLeaderElectionFlags(
  command: Command,
  { resourceName }: { resourceName: string },
): Command {
  return command
    .addOption(
      booleanOption(
        "leader-elect",
        "hold a Lease before acting, so that only one of several replicas does",
        true,
      ),
    )
    .addOption(
      durationOption("leader-elect-lease-duration", "how long others wait for a leader that went silent", {
        defaultMs: 15_000,
        minMs: 1_000,
        why: "a Lease counts whole seconds",
      }),
    )
    .addOption(
      durationOption(
        "leader-elect-renew-deadline",
        "how long a leader acts without a renewal that succeeded",
        {
          defaultMs: 10_000,
          minMs: 1,
          why: "a leader has to renew at some time",
        },
      ),
    )
    .addOption(
      durationOption("leader-elect-retry-period", "between two attempts to get or renew the Lease", {
        defaultMs: 2_000,
        minMs: 1,
        why: "attempts without a pause would be an attack",
      }),
    )
    .option("--leader-elect-resource-name <name>", "name of the Lease", resourceName)
    .option("--leader-elect-resource-namespace <namespace>", "namespace of the Lease", "kube-system");
}

/** The times only make sense together: a leader has to stop before anybody else may begin. */
export function readLeaderElectionFlags(command: Command, flags: LeaderElectionFlags): LeaderElectionChoice {
  const choice = {
    enabled: flags.leaderElect,
    leaseDurationMs: flags.leaderElectLeaseDuration,
    renewDeadlineMs: flags.leaderElectRenewDeadline,
    retryPeriodMs: flags.leaderElectRetryPeriod,
    resourceName: flags.leaderElectResourceName,
    resourceNamespace: flags.leaderElectResourceNamespace,
  };
  const problem = choice.enabled ? problemOf(choice) : undefined;
  if (problem !== undefined) command.error(`error: ${problem}`);
  return choice;
}

/** RFC 1123, as the API server will demand. */
const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

function problemOf(choice: LeaderElectionChoice): string | undefined {
  const lease = formatDuration(choice.leaseDurationMs);
  const renew = formatDuration(choice.renewDeadlineMs);
  const retry = formatDuration(choice.retryPeriodMs);
  if (choice.leaseDurationMs <= choice.renewDeadlineMs) {
    return `--leader-elect-lease-duration ${lease} must be longer than --leader-elect-renew-deadline ${renew}, or two would act at once; raise the first`;
  }
  if (choice.renewDeadlineMs <= 1.2 * choice.retryPeriodMs) {
    return `--leader-elect-renew-deadline ${renew} must be longer than 1.2 times --leader-elect-retry-period ${retry}, or one slow renewal would end the term; lower the second`;
  }
  for (const [flag, value, lengthMax] of [
    ["--leader-elect-resource-name", choice.resourceName, 253],
    ["--leader-elect-resource-namespace", choice.resourceNamespace, 63],
  ] as const) {
    if (value.length > lengthMax || !NAME.test(value)) {
      return `${flag} ${JSON.stringify(value)} is no name of Kubernetes; use lower case letters, digits and dashes`;
    }
  }
  return undefined;
}
