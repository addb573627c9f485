import { describe, expect, test } from "vitest";
import { givenCluster, nodeUser } from "./scenario.testing.ts";
import { requestAttributes } from "./attributes.ts";

const CORE = "/api/v1";
const STORAGE = "/apis/storage.k8s.io/v1";
const LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

/** Pod `mine` on n1 uses one object of each kind; `other` on n2 uses its own. */
async function givenTwoNodes() {
  const cluster = await givenCluster();
  for (const [pod, node] of [
    ["mine", "n1"],
    ["other", "n2"],
  ] as const) {
    await cluster.ok("POST", `${CORE}/nodes`, { metadata: { name: node } });
    await cluster.ok("POST", `${CORE}/persistentvolumes`, volumeFor(pod));
    await cluster.ok("POST", `${STORAGE}/volumeattachments`, {
      metadata: { name: `va-${pod}` },
      spec: { attacher: "d", nodeName: node, source: { persistentVolumeName: `pv-${pod}` } },
    });
    await cluster.ok("POST", `${CORE}/namespaces/t/serviceaccounts`, { metadata: { name: `sa-${pod}` } });
    await cluster.ok("POST", `${CORE}/namespaces/t/pods`, podUsing(pod, node));
  }
  const ask = (node: string, request: string) => {
    const [method = "", target = ""] = request.split(" ");
    const { allowed, reason } = cluster.authorizer.authorize(
      nodeUser(node),
      requestAttributes(method, target),
    );
    return allowed ? "yes" : reason || "no";
  };
  return { ...cluster, ask };
}

describe("a node agent", () => {
  const UNRELATED = "no relationship found between node 'n1' and this object";
  const t = `${CORE}/namespaces/t`;

  for (const [request, verdict] of [
    // What its pods use, and no more.
    [`GET ${t}/secrets/volume-mine`, "yes"],
    [`GET ${t}/secrets/env-mine`, "yes"],
    [`GET ${t}/secrets/env-from-mine`, "yes"],
    [`GET ${t}/secrets/pull-mine`, "yes"],
    [`GET ${t}/secrets/projected-mine`, "yes"],
    [`GET ${t}/secrets/inline-mine`, "yes"],
    [`GET ${CORE}/namespaces/drivers/secrets/stage-mine`, "yes"],
    [`GET ${CORE}/namespaces/drivers/secrets/attach-mine`, UNRELATED], // the controller's, not the node's
    [`GET ${t}/secrets?watch=1&fieldSelector=metadata.name%3Dvolume-mine`, "yes"],
    [`GET ${t}/secrets/volume-other`, UNRELATED],
    [`GET ${t}/secrets`, "No Object name found"],
    [
      `GET ${CORE}/secrets?fieldSelector=metadata.name%3Dvolume-mine`,
      "can only read namespaced object of this type",
    ],
    [`DELETE ${t}/secrets/volume-mine`, "can only read resources of this type"],
    [`GET ${t}/configmaps/config-mine`, "yes"],
    [`GET ${t}/configmaps/config-other`, UNRELATED],
    [`GET ${t}/persistentvolumeclaims/claim-mine`, "yes"],
    [`GET ${t}/persistentvolumeclaims/mine-scratch`, "yes"], // of an ephemeral volume
    [`GET ${t}/persistentvolumeclaims/claim-other`, UNRELATED],
    [`PATCH ${t}/persistentvolumeclaims/claim-mine/status`, "yes"],
    [`PATCH ${t}/persistentvolumeclaims/claim-mine`, "can only get individual resources of this type"],
    [`GET ${CORE}/persistentvolumes/pv-mine`, "yes"],
    [`GET ${CORE}/persistentvolumes/pv-other`, UNRELATED],
    [`GET ${CORE}/persistentvolumes`, "can only get individual resources of this type"],
    [`GET ${STORAGE}/volumeattachments/va-mine`, "yes"],
    [`GET ${STORAGE}/volumeattachments/va-other`, UNRELATED],
    [`PATCH ${STORAGE}/volumeattachments/va-mine/status`, "can only get individual resources of this type"],
    [`POST ${t}/serviceaccounts/sa-mine/token`, "yes"],
    [`POST ${t}/serviceaccounts/sa-other/token`, UNRELATED],
    [`GET ${t}/serviceaccounts/sa-mine`, "can only create tokens for individual service accounts"],
    // Its pods.
    [`GET ${CORE}/pods?fieldSelector=spec.nodeName%3Dn1`, "yes"],
    [`GET ${CORE}/pods?watch=true&fieldSelector=spec.nodeName%3Dn1`, "yes"],
    [
      `GET ${CORE}/pods?fieldSelector=spec.nodeName%3Dn2`,
      "can only list/watch pods with spec.nodeName field selector",
    ],
    [
      `GET ${CORE}/pods?fieldSelector=spec.nodeName!%3Dn1`,
      "can only list/watch pods with spec.nodeName field selector",
    ],
    [`GET ${CORE}/pods`, "can only list/watch pods with spec.nodeName field selector"],
    [`GET ${t}/pods/mine`, "yes"],
    [`GET ${t}/pods/other`, UNRELATED],
    [`PATCH ${t}/pods/mine/status`, "yes"],
    [`PATCH ${t}/pods/other/status`, UNRELATED],
    [`PATCH ${t}/pods/mine`, "no"],
    [`DELETE ${t}/pods/mine`, "yes"],
    [`DELETE ${t}/pods/other`, UNRELATED],
    [`DELETE ${t}/pods/gone`, "yes"], // so that it is told 404
    [`DELETE ${t}/pods`, "no"],
    [`POST ${t}/pods/mine/eviction`, "yes"],
    [`POST ${t}/pods`, "no"],
    // Its own objects.
    [`POST ${CORE}/nodes`, "yes"], // whose, the body says
    [`GET ${CORE}/nodes/n1`, "yes"],
    [`GET ${CORE}/nodes/n2`, "node 'n1' cannot read 'n2', only its own Node object"],
    [`GET ${CORE}/nodes`, "node 'n1' cannot read all nodes, only its own Node object"],
    [`GET ${CORE}/nodes?watch=1&fieldSelector=metadata.name%3Dn1`, "yes"],
    [`PATCH ${CORE}/nodes/n1/status`, "yes"],
    [`PATCH ${CORE}/nodes/n2/status`, "node 'n1' is not allowed to modify node 'n2'"],
    [`DELETE ${CORE}/nodes/n1`, "no"],
    [`PUT ${LEASES}/n1`, "yes"],
    [`PUT ${LEASES}/n2`, "can only access node lease with the same name as the requesting node"],
    [
      `PUT ${LEASES.replace("kube-node-lease", "t")}/n1`,
      'can only access leases in the "kube-node-lease" system namespace',
    ],
    [`PUT ${STORAGE}/csinodes/n1`, "yes"],
    [`PUT ${STORAGE}/csinodes/n2`, "can only access CSINode with the same name as the requesting node"],
    [`GET ${STORAGE}/csinodes`, "can only get, create, update, patch, or delete a CSINode"],
    // What all may read, and what they report.
    [`GET ${STORAGE}/csidrivers`, "yes"],
    [`GET ${STORAGE}/storageclasses/fast`, "yes"],
    [`POST ${t}/events`, "yes"],
    [`DELETE ${t}/events/e`, "no"],
    ["GET /api", "yes"],
    ["GET /metrics", "no"],
    ["GET /apis/rbac.authorization.k8s.io/v1/clusterroles", "no"],
  ] as const) {
    test(`${request}: ${verdict}`, async () => {
      const { ask } = await givenTwoNodes();

      expect(ask("n1", request)).toBe(verdict);
    });
  }

  test("loses what a pod used when the pod goes, and gains it when one comes", async () => {
    const { ask, ok } = await givenTwoNodes();
    const secret = `GET ${CORE}/namespaces/t/secrets/volume-mine`;
    expect([ask("n1", secret), ask("n2", secret)]).toEqual([
      "yes",
      expect.stringContaining("no relationship"),
    ]);

    await ok("DELETE", `${CORE}/namespaces/t/pods/mine?gracePeriodSeconds=0`);
    await ok("POST", `${CORE}/namespaces/t/pods`, podUsing("mine", "n2"));

    expect([ask("n1", secret), ask("n2", secret)]).toEqual([
      expect.stringContaining("no relationship"),
      "yes",
    ]);
  });

  test("is told why in the refusal", async () => {
    const { send } = await givenTwoNodes();

    const { body } = await send("GET", `${CORE}/namespaces/t/secrets/volume-other`, undefined, {
      user: nodeUser("n1"),
    });

    expect(body.message).toBe(
      `secrets "volume-other" is forbidden: User "system:node:n1" cannot get resource "secrets" in API group "" in the namespace "t": ${UNRELATED}`,
    );
  });

  test("is known by its name and its group together", async () => {
    const { authorizer } = await givenTwoNodes();
    const access = requestAttributes("GET", `${CORE}/nodes/n1`);

    for (const user of [
      { name: "system:node:n1", groups: ["system:authenticated"] },
      { name: "n1", groups: ["system:nodes"] },
      { name: "system:node:", groups: ["system:nodes"] },
    ]) {
      expect(authorizer.authorize(user, access).allowed).toBe(false);
    }
  });
});

function volumeFor(pod: string) {
  return {
    metadata: { name: `pv-${pod}` },
    spec: {
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteOnce"],
      claimRef: { namespace: "t", name: `claim-${pod}` },
      csi: {
        driver: "d",
        volumeHandle: pod,
        nodeStageSecretRef: { namespace: "drivers", name: `stage-${pod}` },
        controllerPublishSecretRef: { namespace: "drivers", name: `attach-${pod}` },
      },
    },
  };
}

function podUsing(name: string, nodeName: string) {
  const container = {
    name: "c",
    image: "i",
    env: [{ name: "E", valueFrom: { secretKeyRef: { name: `env-${name}`, key: "k" } } }],
    envFrom: [{ secretRef: { name: `env-from-${name}` } }],
  };
  return {
    metadata: { name },
    spec: {
      nodeName,
      serviceAccountName: `sa-${name}`,
      containers: [container],
      imagePullSecrets: [{ name: `pull-${name}` }],
      volumes: [
        { name: "s", secret: { secretName: `volume-${name}` } },
        { name: "c", configMap: { name: `config-${name}` } },
        { name: "p", projected: { sources: [{ secret: { name: `projected-${name}` } }] } },
        { name: "v", persistentVolumeClaim: { claimName: `claim-${name}` } },
        { name: "i", csi: { driver: "d", nodePublishSecretRef: { name: `inline-${name}` } } },
        {
          name: "scratch",
          ephemeral: {
            volumeClaimTemplate: {
              spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
            },
          },
        },
      ],
    },
  };
}
