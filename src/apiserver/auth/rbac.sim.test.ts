import { expect, test } from "vitest";
import { chance, pick, type Random } from "../../base/random.ts";
import { forSeeds } from "../../sim/seeds.ts";
import type { ObjectStore, StoreKey } from "../store/store.ts";
import { parseStored } from "../objects.ts";
import { effectiveRules } from "./aggregation.ts";
import { resourceAccess, type AccessAttributes } from "./attributes.ts";
import { createRbac } from "./rbac.ts";
import { allowsPath, allowsResource, rulesOf, type PolicyRule } from "./rules.ts";
import { bareStore } from "./scenario.testing.ts";
import { listAt, textAt } from "./stored.ts";
import type { UserInfo } from "./user.ts";

const GROUP = "rbac.authorization.k8s.io";
const NAMESPACES = ["a", "b"];
const NAMES = ["r1", "r2", "r3"];
const VERBS = ["get", "list", "*"];
const RESOURCES = ["pods", "pods/status", "*/status", "secrets", "*"];
const USERS: UserInfo[] = [
  { name: "ann", groups: ["devs"] },
  { name: "bob", groups: ["ops", "devs"] },
  { name: "system:serviceaccount:a:sa", groups: ["system:serviceaccounts"] },
];

test("after any writes the index answers as a scan of all bindings does", async () => {
  const answers = { allowed: 0, denied: 0 };
  await forSeeds(60, async (random) => {
    const { store } = bareStore();
    const rbac = createRbac(store);

    for (let step = 0; step < 120; step++) {
      await writeSomething(store, random);
      // Not after every write, so that the index also catches up with several at once.
      if (chance(random, 0.3)) continue;
      for (let question = 0; question < 3; question++) {
        const [user, access] = [pick(random, USERS), randomAccess(random)];
        const expected = naive(store, user, access);
        expect(rbac.authorize(user, access).allowed, JSON.stringify({ step, user, access })).toBe(expected);
        answers[expected ? "allowed" : "denied"]++;
      }
    }
  });
  // Both answers must be common, or equality proves little.
  expect(Math.min(answers.allowed, answers.denied)).toBeGreaterThan(0.1 * (answers.allowed + answers.denied));
});

async function writeSomething(store: ObjectStore, random: Random): Promise<void> {
  const [plural, object] = pick(random, [
    ["roles", { rules: randomRules(random) }],
    ["clusterroles", randomClusterRole(random)],
    ["rolebindings", randomBinding(random, ["Role", "ClusterRole"])],
    ["clusterrolebindings", randomBinding(random, ["ClusterRole"])],
  ] as const);
  const namespace = plural.startsWith("cluster") ? "" : pick(random, NAMESPACES);
  const key: StoreKey = { resource: `${plural}.${GROUP}`, namespace, name: pick(random, NAMES) };
  const existing = store.get(key);
  const metadata = { name: key.name, namespace, labels: { part: pick(random, NAMES) } };
  const render = () => JSON.stringify({ metadata, ...object });
  if (existing === undefined) await store.create(key, render);
  else if (chance(random, 0.2)) await store.delete(key, render, { expected: existing.revision });
  else await store.update(key, render, { expected: existing.revision });
}

function randomRules(random: Random): PolicyRule[] {
  return Array.from({ length: 1 + random.int(3) }, () => {
    if (chance(random, 0.2))
      return { verbs: [pick(random, VERBS)], nonResourceURLs: [pick(random, ["/metrics", "/*"])] };
    return {
      verbs: [pick(random, VERBS)],
      apiGroups: [pick(random, ["", "*", "apps"])],
      resources: [pick(random, RESOURCES)],
      ...(chance(random, 0.3) ? { resourceNames: [pick(random, NAMES)] } : {}),
    };
  });
}

function randomClusterRole(random: Random): object {
  if (chance(random, 0.7)) return { rules: randomRules(random) };
  const selector = { matchLabels: { part: pick(random, NAMES) } };
  return { aggregationRule: { clusterRoleSelectors: [selector] }, rules: randomRules(random) };
}

function randomBinding(random: Random, kinds: readonly string[]): object {
  const subjects = Array.from({ length: random.int(4) }, () =>
    pick(random, [
      { kind: "User", name: pick(random, USERS).name },
      { kind: "Group", name: pick(random, ["devs", "ops"]) },
      { kind: "ServiceAccount", name: "sa", ...(chance(random, 0.5) ? { namespace: "a" } : {}) },
    ]),
  );
  return { roleRef: { kind: pick(random, kinds), name: pick(random, NAMES) }, subjects };
}

function randomAccess(random: Random): AccessAttributes {
  if (chance(random, 0.15)) return { kind: "path", verb: "get", path: pick(random, ["/metrics", "/x"]) };
  return resourceAccess({
    verb: pick(random, ["get", "list", "delete"]),
    group: pick(random, ["", "apps"]),
    resource: pick(random, ["pods", "secrets"]),
    subresource: pick(random, ["", "", "status"]),
    namespace: pick(random, ["", ...NAMESPACES]),
    name: pick(random, ["", ...NAMES]),
  });
}

/** The specification read aloud: every binding, every subject, every rule, from the store as it is. */
function naive(store: ObjectStore, user: UserInfo, access: AccessAttributes): boolean {
  const all = (plural: string) => [...store.scan({ resource: `${plural}.${GROUP}` })].map(parseStored);
  const namespace = access.kind === "resource" ? access.namespace : "";
  const local = all("rolebindings").filter(
    ({ metadata }) => namespace !== "" && metadata.namespace === namespace,
  );
  return [...all("clusterrolebindings"), ...local].some((binding) => {
    const bindingNamespace = binding.metadata.namespace ?? "";
    const applies = listAt(binding, "subjects").some((subject) => {
      const [kind, name] = [textAt(subject, "kind"), textAt(subject, "name")];
      if (kind === "User") return name === user.name;
      if (kind === "Group") return user.groups.includes(name);
      const accountNamespace = textAt(subject, "namespace") || bindingNamespace;
      return accountNamespace !== "" && user.name === `system:serviceaccount:${accountNamespace}:${name}`;
    });
    if (!applies) return false;
    const [kind, name] = [textAt(binding, "roleRef", "kind"), textAt(binding, "roleRef", "name")];
    const role = all(kind === "Role" ? "roles" : "clusterroles").find(
      ({ metadata }) =>
        metadata.name === name && (kind !== "Role" || metadata.namespace === bindingNamespace),
    );
    if (role === undefined) return false;
    const rules = kind === "Role" ? rulesOf(role) : effectiveRules(role, () => all("clusterroles"));
    return rules.some((rule) =>
      access.kind === "path" ? allowsPath(rule, access) : allowsResource(rule, access),
    );
  });
}
