import { givenServer } from "../scenario.testing.ts";

const ADMISSION = "/apis/admissionregistration.k8s.io/v1";
const DEPLOYMENTS = "/apis/apps/v1/namespaces/t/deployments";
const rule = (resources: readonly string[], operations: readonly string[], apiGroups = ["*"]) => ({
  apiGroups,
  apiVersions: ["*"],
  operations,
  resources,
});

/** For tests: a server, and policies in one line each. */
export async function givenPolicies(options: Parameters<typeof givenServer>[0] = {}) {
  const server = await givenServer(options);

  function matching({ resources = ["deployments"], operations = ["*"], ...match }: Match) {
    return { resourceRules: [rule(resources, operations)], ...match };
  }

  /** A validating policy and its binding, both of this name; `spec` and `binding` are added to theirs. */
  async function validating(name: string, spec: object, { match = {}, binding = {} }: Extra = {}) {
    await server.ok("POST", `${ADMISSION}/validatingadmissionpolicies`, {
      metadata: { name },
      spec: { matchConstraints: matching(match), ...spec },
    });
    await server.ok("POST", `${ADMISSION}/validatingadmissionpolicybindings`, {
      metadata: { name },
      spec: { policyName: name, validationActions: ["Deny"], ...binding },
    });
  }

  async function mutating(name: string, spec: object, { match = {}, binding = {} }: Extra = {}) {
    await server.ok("POST", `${ADMISSION}/mutatingadmissionpolicies`, {
      metadata: { name },
      spec: {
        matchConstraints: matching({ operations: ["CREATE", "UPDATE"], ...match }),
        reinvocationPolicy: "Never",
        ...spec,
      },
    });
    await server.ok("POST", `${ADMISSION}/mutatingadmissionpolicybindings`, {
      metadata: { name },
      spec: { policyName: name, ...binding },
    });
  }

  const create = (name: string, replicas = 1, metadata: object = {}) =>
    server.send("POST", DEPLOYMENTS, deployment(name, replicas, metadata));
  return { ...server, validating, mutating, create, ADMISSION, DEPLOYMENTS };
}

interface Match {
  readonly resources?: readonly string[];
  readonly operations?: readonly string[];
  readonly [field: string]: unknown;
}

interface Extra {
  readonly match?: Match;
  readonly binding?: object;
}

export function deployment(name: string, replicas: number, metadata: object = {}) {
  const labels = { app: name };
  return {
    metadata: { name, ...metadata },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: "c", image: "i" }] } },
    },
  };
}
