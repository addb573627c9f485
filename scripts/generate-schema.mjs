// Writes the field tables of src/apiserver/field-tables, and the default roles of src/apiserver/auth, from the definitions that Kubernetes publishes:
//
//   npm run generate:schema -- --kubernetes DIR --api DIR --apimachinery DIR
//
// The three are the sources of the Go modules k8s.io/kubernetes, k8s.io/api and k8s.io/apimachinery of one release
// (`go mod download -json MODULE@VERSION` prints their place). Only facts are taken: names, types, numbers, merge
// keys, what is a pointer and what is always written. Nothing of the source is kept.
import { parseArgs } from "node:util";
import { writePolicy } from "./schema/policy.mjs";
import { createPackages, readDefinitions } from "./schema/sources.mjs";
import { buildTable } from "./schema/table.mjs";
import { writeTables } from "./schema/write.mjs";

/** Whose kinds are in the table: all that this server serves or reads as a body. */
const GROUP_VERSIONS = [
  "v1",
  "admissionregistration.k8s.io/v1",
  "apps/v1",
  "authentication.k8s.io/v1",
  "authorization.k8s.io/v1",
  "autoscaling/v1",
  "autoscaling/v2",
  "batch/v1",
  "certificates.k8s.io/v1",
  "coordination.k8s.io/v1",
  "discovery.k8s.io/v1",
  "events.k8s.io/v1",
  "flowcontrol.apiserver.k8s.io/v1",
  "networking.k8s.io/v1",
  "node.k8s.io/v1",
  "policy/v1",
  "rbac.authorization.k8s.io/v1",
  "resource.k8s.io/v1",
  "scheduling.k8s.io/v1",
  "storage.k8s.io/v1",
];

const { values } = parseArgs({
  options: { kubernetes: { type: "string" }, api: { type: "string" }, apimachinery: { type: "string" } },
});
const { kubernetes, api, apimachinery } = values;
if (kubernetes === undefined || api === undefined || apimachinery === undefined) {
  process.stderr.write("generate-schema: --kubernetes, --api and --apimachinery are all needed\n");
  process.exit(2);
}

const definitions = readDefinitions(kubernetes);
const table = buildTable({
  definitions,
  packages: createPackages({ api, apimachinery }),
  wanted: new Set(GROUP_VERSIONS),
});
const release = /@([^/]+)\/?$/.exec(kubernetes)?.[1] ?? "unknown";
const written = writeTables(table, { release });
const policy = writePolicy(kubernetes, { release });
process.stdout.write(`${table.size} definitions in ${written} tables, ${policy} roles and bindings\n`);
