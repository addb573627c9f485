import { play, type Cast } from "../harness/cast.ts";
import { controlPlane } from "./control-plane.ts";
import { e2e, e2eSlow } from "./e2e.ts";
import { informerContract } from "./informer-contract.ts";
import { kubectl, recordings } from "./embedded-server.ts";
import { kubernetesSpecs } from "./kubernetes-specs.ts";
import { oneClaim } from "./one-claim.ts";
import { restarts } from "./restarts.ts";
import { sanity } from "./sanity.ts";
import type { Suite } from "./suite.ts";
import { takeover } from "./takeover.ts";

/** In the order in which they are run: what is quick and tells most comes first. */
export const SUITES: readonly Suite[] = [
  claimSuite("controller", "mooring controller in place of the built-in one, everything else real", {
    controller: "ours",
  }),
  claimSuite("attacher", "mooring attacher in place of external-attacher, everything else real", {
    attacher: "ours",
  }),
  claimSuite("both", "mooring controller and attacher together, everything else real", {
    controller: "ours",
    attacher: "ours",
  }),
  claimSuite("driver", "mooring driver under the real controllers and sidecars", { driver: "ours" }),
  claimSuite("ours", "mooring controller, attacher and driver on a real API server", {
    controller: "ours",
    attacher: "ours",
    driver: "ours",
  }),
  claimSuite("apiserver", "mooring apiserver under real controllers, sidecars and driver", {
    apiserver: "ours",
  }),
  claimSuite("apiserver-scheduler", "the same, and a claim that waits for kube-scheduler to place its pod", {
    apiserver: "ours",
    scheduler: "real",
  }),
  claimSuite("scheduler", "as both, and a claim that waits for kube-scheduler to place its pod", {
    controller: "ours",
    attacher: "ours",
    scheduler: "real",
  }),
  claimSuite(
    "kubelet",
    "a real kubelet mounts, through host-path, what mooring controller and attacher attached",
    {
      controller: "ours",
      attacher: "ours",
      node: "kubelet",
    },
  ),
  claimSuite("kubelet-driver", "a real kubelet mounts through mooring driver, which registers itself", {
    controller: "ours",
    attacher: "ours",
    driver: "ours",
    node: "kubelet",
  }),
  claimSuite("node", "mooring node in place of the kubelet, controllers, sidecars and driver real", {
    node: "ours",
  }),
  suite("sanity", "mooring driver passes csi-sanity on real loop devices", sanity, { everyVersion: false }),
  suite(
    "takeover",
    "500 attached volumes change controller there and back under load: nothing moves",
    takeover,
    { usualSeconds: 12 },
  ),
  suite(
    "informer",
    "cache equals server after compaction, restarts and kill -9 of server and etcd",
    informerContract,
    { usualSeconds: 38 },
  ),
  suite(
    "restarts",
    "kube-apiserver and etcd killed under load: every volume gets where it belongs",
    restarts,
    // 30 where no write of volumesAttached loses its answer; one that does delays detaches by 70.
    { usualSeconds: 100 },
  ),
  suite("kubectl", "a real kubectl of this version against mooring apiserver", kubectl, { usualSeconds: 11 }),
  suite("recordings", "mooring apiserver answers as was recorded from a real one", recordings, {
    everyVersion: false,
  }),
  suite(
    "control-plane",
    "kube-controller-manager and kube-scheduler at work on mooring apiserver, whose own controllers are off",
    controlPlane,
    { everyVersion: false, usualSeconds: 60 },
  ),
  // Last: its program alone takes as long to build as all others together.
  suite(
    "specs",
    "Kubernetes' own conformance specs of what mooring controller reads and writes, beside it",
    kubernetesSpecs,
    { everyVersion: false, usualSeconds: 20 },
  ),
  suite("e2e", "Kubernetes' own conformance specs that start no container, on mooring apiserver", e2e, {
    everyVersion: false,
    // 315 alone on a machine of two cores.
    usualSeconds: 320,
  }),
  suite("e2e-slow", "the same, of those that take five minutes each", e2eSlow, {
    everyVersion: false,
    usualSeconds: 400,
  }),
];

function claimSuite(name: string, claim: string, differs: Partial<Cast>): Suite {
  const cast: Cast = {
    apiserver: "real",
    controller: "real",
    attacher: "real",
    driver: "host-path",
    node: "absent",
    scheduler: "absent",
    ...differs,
  };
  const usualSeconds = cast.node === "kubelet" ? 25 : 5;
  return suite(name, claim, ({ stage, binaries }) => play(stage, { binaries, cast }, oneClaim), {
    usualSeconds,
  });
}

function suite(
  name: string,
  claim: string,
  run: Suite["run"],
  { everyVersion = true, usualSeconds = 5 }: { everyVersion?: boolean; usualSeconds?: number } = {},
): Suite {
  return { name, claim, run, everyVersion, usualSeconds };
}
