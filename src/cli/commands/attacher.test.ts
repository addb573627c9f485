import { CommanderError } from "commander";
import { describe, expect, test } from "vitest";
import type { AttacherProcessOptions } from "../../processes/attacher.ts";
import { attacherCommand } from "./attacher.ts";

/** What it would have run with, or what it complained about. */
async function parse(
  ...args: string[]
): Promise<{ options: AttacherProcessOptions | undefined; complaint: string }> {
  let options: AttacherProcessOptions | undefined;
  let complaint = "";
  const command = attacherCommand(async (given) => void (options = given))
    .exitOverride()
    .configureOutput({ writeErr: (text) => void (complaint += text), writeOut: () => undefined });
  try {
    await command.parseAsync(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
  }
  return { options, complaint };
}

describe("mooring attacher", () => {
  test("without flags it is upstream, without a fixed request rate", async () => {
    expect((await parse()).options).toEqual({
      csiAddresses: ["/run/csi/socket"],
      kubeconfig: undefined,
      qps: undefined,
      burst: undefined,
      resyncMs: 600_000,
      timeoutMs: 15_000,
      workers: 10,
      retryInitialMs: 1_000,
      retryMaxMs: 300_000,
      maxEntries: 0,
      reconcileSyncMs: 60_000,
      defaultFsType: "",
      singleNodeGuard: true,
      errorCodes: true,
      leaderElection: {
        enabled: false,
        namespace: undefined,
        leaseDurationMs: 15_000,
        renewDeadlineMs: 10_000,
        retryPeriodMs: 5_000,
        labels: {},
      },
      httpEndpoint: undefined,
      metricsPath: "/metrics",
      logLevel: "info",
      logFormat: "json",
      logCalls: false,
      answerCharsMax: -1,
    });
  });

  test("takes the arguments of a real manifest, with one dash or two", async () => {
    const { options, complaint } = await parse(
      ...["--v=5", "-csi-address=/csi/a.sock", "--csi-address", "unix:///csi/b.sock", "-timeout", "1m"],
      ...["--leader-election=true", "--leader-election-labels=a:b, c:d", "--worker-threads=256"],
      ...["--kube-api-qps=500", "--kube-api-burst=500", "--http-endpoint=:8080", "--automaxprocs=true"],
      ...["--feature-gates=MutableCSINodeAllocatableCount=false,ReleaseLeaderElectionOnExit=true"],
      ...[
        "--default-fstype=ext4",
        "--logging-format=text",
        "--max-grpc-log-length=200",
        "--single-node-guard=false",
      ],
    );

    expect(complaint).toBe("");
    expect(options).toMatchObject({
      csiAddresses: ["/csi/a.sock", "unix:///csi/b.sock"],
      timeoutMs: 60_000,
      workers: 256,
      qps: 500,
      burst: 500,
      errorCodes: false,
      defaultFsType: "ext4",
      leaderElection: { enabled: true, labels: { a: "b", c: "d" } },
      httpEndpoint: { host: "", port: 8080 },
      logLevel: "debug",
      logFormat: "text",
      logCalls: true,
      answerCharsMax: 200,
      singleNodeGuard: false,
    });
  });

  for (const [args, word] of [
    [["--worker-threads=0"], "from 1 up"],
    [["--http-endpoint=:1", "--metrics-address=:2"], "both given"], // 80
    [["--feature-gates=Nonsense=true"], "no gate"],
    [["--leader-election-labels=a"], "key:value"],
    [["--timeout=15"], "duration"],
    [["--leader-election", "--leader-election-lease-duration=5s"], "longer than"],
    [["--leader-election", "--leader-election-retry-period=9s"], "1.2 times"],
    [["--logging-format=xml"], "Allowed choices"],
    [["--max-grpc-log-length=much"], "whole number"],
    [["--nonsense"], "unknown option"],
  ] as const) {
    test(`${args.join(" ")} is refused`, async () => {
      const { options, complaint } = await parse(...args);

      expect(options).toBeUndefined();
      expect(complaint).toContain(word);
    });
  }
});
