import { expect, test } from "vitest";
import { ensureBootstrapPolicy } from "../auth/bootstrap.ts";
import { createSeededRandom } from "../../base/seeded-random.ts";
import type { Answer } from "../scenario.testing.ts";
import { givenEngine, MERGE } from "./stage.testing.ts";

const ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

interface Role extends Answer {
  readonly rules: readonly { readonly resources: readonly string[] }[] | null;
}

async function givenRoles() {
  const engine = await givenEngine();
  return {
    ...engine,
    role: (name: string, members: object, labels: object = {}) =>
      engine.ok("POST", ROLES, { metadata: { name, labels }, ...members }),
    resourcesOf: async (name: string) => {
      const { rules } = (await engine.ok("GET", `${ROLES}/${name}`)) as Role;
      return rules?.flatMap(({ resources }) => resources) ?? rules;
    },
  };
}

function rules(...resources: string[]) {
  return { rules: resources.map((one) => ({ apiGroups: [""], resources: [one], verbs: ["get"] })) };
}

function madeOf(...labels: string[]) {
  return {
    aggregationRule: { clusterRoleSelectors: labels.map((one) => ({ matchLabels: { [one]: "y" } })) },
  };
}

test("a role shows what it collects, by selector and then by name, each rule once", async () => {
  const { role, resourcesOf } = await givenRoles();
  await role("sum", madeOf("first", "second"));
  expect(await resourcesOf("sum")).toBeNull();

  await role("z", rules("pods", "secrets"), { first: "y" });
  await role("a", rules("nodes", "pods"), { first: "y", second: "y" });
  await role("b", rules("events"), { second: "y" });

  expect(await resourcesOf("sum")).toEqual(["nodes", "pods", "secrets", "events"]);
});

test("it follows every change: rules, labels, selectors, deletions, and hands that write into it", async () => {
  const { role, resourcesOf, ok } = await givenRoles();
  await role("sum", { ...madeOf("l"), ...rules("written-by-hand") });
  expect(await resourcesOf("sum")).toBeNull();
  await role("a", rules("pods"), { l: "y" });

  await ok("PATCH", `${ROLES}/a`, rules("nodes"), MERGE);
  expect(await resourcesOf("sum")).toEqual(["nodes"]);
  await ok("PATCH", `${ROLES}/sum`, rules("events"), MERGE);
  expect(await resourcesOf("sum")).toEqual(["nodes"]);
  await ok("PATCH", `${ROLES}/a`, { metadata: { labels: { l: "n" } } }, MERGE);
  expect(await resourcesOf("sum")).toBeNull();
  await ok("PATCH", `${ROLES}/sum`, madeOf("m"), MERGE);
  await ok("PATCH", `${ROLES}/a`, { metadata: { labels: { m: "y" } } }, MERGE);
  expect(await resourcesOf("sum")).toEqual(["nodes"]);
  await ok("DELETE", `${ROLES}/a`);
  expect(await resourcesOf("sum")).toBeNull();
});

test("a circle of roles comes to rest, and keeps nothing that no role grants any more", async () => {
  const { role, resourcesOf, ok, settle, store } = await givenRoles();
  await role("a", madeOf("l"), { l: "y" });
  await role("b", madeOf("l"), { l: "y" });
  await role("leaf", rules("pods"), { l: "y" });
  expect([await resourcesOf("a"), await resourcesOf("b")]).toEqual([["pods"], ["pods"]]);

  await ok("DELETE", `${ROLES}/leaf`);
  expect([await resourcesOf("a"), await resourcesOf("b")]).toEqual([null, null]);
  const { revision } = store;
  await settle();
  expect(store.revision).toBe(revision);
});

test("admin, edit and view of every cluster have their rules, and a restart writes nothing", async () => {
  const engine = await givenEngine();
  const { store, clock, ok, settle } = engine;
  const bootstrap = () => ensureBootstrapPolicy({ store, clock, random: createSeededRandom("roles") });
  await bootstrap();
  await settle();

  for (const name of ["admin", "edit", "view"]) {
    const { rules: shown } = (await ok("GET", `${ROLES}/${name}`)) as Role;
    expect(shown?.length, name).toBeGreaterThan(0);
  }
  const { revision } = store;
  await engine.stop();
  await bootstrap();
  engine.start();
  await settle();
  expect(store.revision).toBe(revision);
});
