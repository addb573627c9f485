import { expect, test } from "vitest";
import { createSeededRandom } from "../../base/seeded-random.ts";
import type { Client, ListOptions } from "../../kube/client/client.ts";
import { KubeError } from "../../kube/errors.ts";
import { collectionPath, type Resource } from "../../kube/object.ts";
import { SimScheduler } from "../../sim/scheduler.ts";
import { createTrustBundles } from "./trust-bundles-api.ts";

const signal = new AbortController().signal;
const pem = (name: string) => `-----BEGIN CERTIFICATE-----\n${name}\n-----END CERTIFICATE-----\n`;
const BUNDLES = [
  { metadata: { name: "one", labels: { env: "a" } }, spec: { signerName: "s", trustBundle: pem("one") } },
  { metadata: { name: "two", labels: { env: "b" } }, spec: { signerName: "s", trustBundle: pem("two") } },
  { metadata: { name: "odd" }, spec: { signerName: "s", trustBundle: 7 } },
];

function given({ serves = "v1beta1" }: { serves?: string | undefined } = {}) {
  const asked: string[] = [];
  const failures: Error[] = [];
  const scheduler = new SimScheduler(createSeededRandom(1));
  const list = async (resource: Resource, { fieldSelector = "" }: ListOptions = {}) => {
    asked.push(`${collectionPath(resource)} ${fieldSelector}`);
    const failure = failures.shift();
    if (failure) throw failure;
    if (resource.version !== serves)
      throw new KubeError("NotFound", "the server could not find the requested resource");
    const name = /^metadata\.name=(.*)/.exec(fieldSelector)?.[1];
    return {
      metadata: {},
      items: BUNDLES.filter(({ metadata }) => name === undefined || metadata.name === name),
    };
  };
  const client = { list } as unknown as Pick<Client, "list">;
  return {
    asked,
    failures,
    scheduler,
    bundles: createTrustBundles({ client, clock: scheduler.createClock() }),
  };
}

test("a bundle is found by its name, in the newest version the cluster serves, which is remembered", async () => {
  const { bundles, asked, scheduler } = given();

  expect(await bundles.byName("one", signal)).toBe(pem("one"));
  await scheduler.runFor(6_000);
  expect(await bundles.byName("none", signal)).toBeUndefined();

  const path = (version: string) => `/apis/certificates.k8s.io/${version}/clustertrustbundles`;
  expect(asked).toEqual([
    `${path("v1")} metadata.name=one`,
    `${path("v1beta1")} metadata.name=one`,
    `${path("v1beta1")} metadata.name=none`,
  ]);
});

test("a name cannot ask for more than itself", async () => {
  const { bundles, asked } = given({ serves: "v1" });

  await bundles.byName("a,spec.signerName=b", signal);

  expect(asked[0]).toMatch(/ metadata\.name=a\\,spec\.signerName\\=b$/);
});

test("those of a signer go by their labels: without a selector none, with an empty one all", async () => {
  const { bundles } = given();

  expect(await bundles.bySigner("s", undefined, signal)).toEqual([]);
  expect(await bundles.bySigner("s", {}, signal)).toEqual([pem("one"), pem("two"), ""]);
  expect(await bundles.bySigner("s", { matchLabels: { env: "b" } }, signal)).toEqual([pem("two")]);
});

test("a cluster without that API is told apart from one without that bundle, in words", async () => {
  const { bundles, asked } = given({ serves: "v9" });

  await expect(bundles.byName("one", signal)).rejects.toThrow(
    /^this cluster serves no ClusterTrustBundles .*turn that API on, or take the clusterTrustBundle source out/,
  );
  expect(asked).toHaveLength(3);
});

test("who asks at the same time shares an answer; a failure is nobody else's", async () => {
  const { bundles, asked, failures, scheduler } = given({ serves: "v1" });
  failures.push(new KubeError("Forbidden", "not yours"));

  await expect(bundles.byName("one", signal)).rejects.toMatchObject({
    outcome: "transient",
    message: "reading ClusterTrustBundles with metadata.name=one: not yours",
  });
  await Promise.all([1, 2, 3].map(() => bundles.byName("one", signal)));
  expect(asked).toHaveLength(2);
  await scheduler.runFor(5_000);
  await bundles.byName("one", signal);

  expect(asked).toHaveLength(3);
});
