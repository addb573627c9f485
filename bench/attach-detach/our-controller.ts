import { DEFAULT_OPTIONS } from "../../src/attach-detach/options.ts";
import { runController } from "../../src/processes/controller.ts";

/** `mooring controller --leader-elect=false` in a child of the benchmark; the parent looks at its process. */
export async function control({
  kubeconfig,
  port,
}: {
  kubeconfig: string;
  port: number;
}): Promise<{ pid: number }> {
  void runController({
    ...DEFAULT_OPTIONS,
    kubeconfig,
    qps: undefined,
    burst: undefined,
    leaderElection: {
      enabled: false,
      leaseDurationMs: 15_000,
      renewDeadlineMs: 10_000,
      retryPeriodMs: 2_000,
      resourceName: "mooring-attach-detach-controller",
      resourceNamespace: "kube-system",
    },
    httpEndpoint: { host: "127.0.0.1", port },
    logLevel: "warn",
    flexVolumePluginDir: "/nonexistent",
  });
  return { pid: process.pid };
}
