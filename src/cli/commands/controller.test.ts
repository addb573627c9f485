import { CommanderError } from "commander";
import { describe, expect, test } from "vitest";
import type { ControllerOptions } from "../../processes/controller.ts";
import { controllerCommand } from "./controller.ts";

/** What it would have run with, or what it complained about. */
async function parse(
  ...args: string[]
): Promise<{ options: ControllerOptions | undefined; complaint: string }> {
  let options: ControllerOptions | undefined;
  let complaint = "";
  const command = controllerCommand(async (given) => void (options = given))
    .exitOverride()
    .configureOutput({ writeErr: (text) => void (complaint += text) });
  try {
    await command.parseAsync(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
  }
  return { options, complaint };
}

describe("mooring controller", () => {
  test("without flags it is upstream, with a Lease of its own and a socket for this machine only", async () => {
    expect((await parse()).options).toEqual({
      disableReconcileSync: false,
      reconcileSyncPeriodMs: 60_000,
      disableForceDetachOnTimeout: false,
      flexVolumePluginDir: "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/",
      detachPolicies: [],
      leaderElection: {
        enabled: true,
        leaseDurationMs: 15_000,
        renewDeadlineMs: 10_000,
        retryPeriodMs: 2_000,
        resourceName: "mooring-attach-detach-controller",
        resourceNamespace: "kube-system",
      },
      httpEndpoint: { host: "127.0.0.1", port: 10_257 },
      logLevel: "info",
      kubeconfig: undefined,
      qps: undefined,
      burst: undefined,
    });
  });

  test("flags of kube-controller-manager mean what they mean there", async () => {
    const { options } = await parse(
      "--kubeconfig=/etc/kubernetes/controller.conf",
      "--kube-api-qps=20.5",
      "--kube-api-burst=30",
      "--disable-attach-detach-reconcile-sync",
      "--attach-detach-reconcile-sync-period=1h2m",
      "--disable-force-detach-on-timeout=true",
      "--leader-elect=false",
      "--flex-volume-plugin-dir=/flex",
    );

    expect(options).toMatchObject({
      kubeconfig: "/etc/kubernetes/controller.conf",
      qps: 20.5,
      burst: 30,
      disableReconcileSync: true,
      reconcileSyncPeriodMs: 3_720_000,
      disableForceDetachOnTimeout: true,
      leaderElection: { enabled: false },
      flexVolumePluginDir: "/flex",
    });
  });

  for (const [text, address] of [
    [":10257", { host: "", port: 10_257 }],
    ["0.0.0.0:1", { host: "0.0.0.0", port: 1 }],
    ["[::1]:0", { host: "::1", port: 0 }],
    ["localhost:65535", { host: "localhost", port: 65_535 }],
    ["", undefined],
  ] as const) {
    test(`--http-endpoint ${JSON.stringify(text)}`, async () => {
      expect((await parse("--http-endpoint", text)).options?.httpEndpoint).toEqual(address);
    });
  }

  test("detach policies keep their order", async () => {
    const { options } = await parse(
      "--detach-policy=storageclass=fast.ssd:after=10m",
      "--detach-policy=driver=ebs.csi.aws.com:when-fenced",
      "--detach-policy=driver=Loop.example-1:never",
    );

    expect(options?.detachPolicies).toEqual([
      { match: { kind: "storage-class", storageClass: "fast.ssd" }, force: { kind: "after", ms: 600_000 } },
      { match: { kind: "driver", driver: "ebs.csi.aws.com" }, force: { kind: "when-fenced" } },
      { match: { kind: "driver", driver: "Loop.example-1" }, force: { kind: "never" } },
    ]);
  });
});

describe("mooring controller refuses, naming the flag and what to write instead", () => {
  for (const [args, complaint] of [
    [
      ["--attach-detach-reconcile-sync-period", "999ms"],
      /at least 1s: .*--disable-attach-detach-reconcile-sync/,
    ],
    [["--attach-detach-reconcile-sync-period", "60"], /Give a duration such as 300ms/],
    [["--leader-elect=maybe"], /Give --leader-elect, --leader-elect=true or --leader-elect=false/],
    [["--leader-elect=constructor"], /Give --leader-elect,/],
    [["--kube-api-qps", "0"], /above 0/],
    [["--kube-api-qps", "many"], /above 0/],
    [["--kube-api-burst", "1.5"], /whole number/],
    [["--http-endpoint", "10257"], /HOST:PORT/],
    [["--http-endpoint", ":65536"], /HOST:PORT/],
    [["--http-endpoint", "::1:80"], /HOST:PORT/],
    [["--log-level", "loud"], /debug, info, warn, error/],
    [["--detach-policy", "never"], /rule is missing.*driver=NAME:RULE/],
    [["--detach-policy", "pod=x:never"], /neither driver= nor storageclass=/],
    [["--detach-policy", "driver=:never"], /"" is no name of a CSI driver/],
    [["--detach-policy", "driver=a/b:never"], /"a\/b" is no name of a CSI driver/],
    [["--detach-policy", "storageclass=Fast:never"], /"Fast" is no name of a StorageClass/],
    [["--detach-policy", "driver=a:sometimes"], /"sometimes" is no rule; it is never, when-fenced or after=/],
    [["--detach-policy", "driver=a:after=6"], /"6" is no duration/],
    [["--detach-policy", "driver=a:after=-1s"], /at least 1s/],
    [
      ["--detach-policy", "driver=a:never", "--detach-policy", "driver=a:after=1m"],
      /driver=a has a policy already/,
    ],
    [["--kube-api-burst", "30"], /--kube-api-burst needs --kube-api-qps/],
    [["--leader-elect-lease-duration", "500ms"], /at least 1s: a Lease counts whole seconds/],
    [["--leader-elect-lease-duration", "10s"], /lease-duration 10s must be longer than .*renew-deadline 10s/],
    [
      ["--leader-elect-retry-period", "9s"],
      /renew-deadline 10s must be longer than 1\.2 times .*retry-period 9s/,
    ],
    [["--leader-elect-resource-name", "A b"], /--leader-elect-resource-name "A b" is no name/],
    [["--leader-elect-resource-namespace", ""], /--leader-elect-resource-namespace "" is no name/],
    [["--controllers=*"], /unknown option '--controllers=\*'/],
    [["surplus"], /too many arguments/],
  ] as const) {
    test(args.join(" "), async () => {
      const parsed = await parse(...args);

      expect(parsed.complaint).toMatch(complaint);
      expect(parsed.options).toBeUndefined();
    });
  }
});
