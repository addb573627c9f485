// An unmodified kubectl against the real binary: whatever a user types first has to work.
// One server for all; tests keep to namespaces and names of their own, so that they can run side by side.
import { join } from "node:path";
import { afterAll, beforeAll, describe, test } from "vitest";
import { access } from "./kubectl-access.ts";
import { changes } from "./kubectl-changes.ts";
import { creates } from "./kubectl-creates.ts";
import { deletes } from "./kubectl-deletes.ts";
import { deployments } from "./kubectl-deployments.ts";
import { reads } from "./kubectl-reads.ts";
import { createSuite } from "./kubectl-suite.ts";
import { createKubectl, kubectlIsHere } from "./kubectl.ts";
import { Running, scratch } from "./mooring.ts";

if (kubectlIsHere()) {
  describe("kubectl", { concurrent: true }, everything);
} else {
  // eslint-disable-next-line no-console -- the task that runs all tests looks for this line
  console.log("left out: kubectl suite: no kubectl on this machine");
  test.skip("kubectl");
}

function everything(): void {
  const place = scratch();
  const data = join(place.path, "data");
  const kubectl = createKubectl({ home: place.path, kubeconfig: join(data, "admin.kubeconfig") });
  const suite = createSuite(kubectl, { home: place.path, data });

  let server: Running;
  beforeAll(async () => {
    server = new Running("apiserver", "--data-dir", data, "--listen", "127.0.0.1:0");
    await server.says(/"message":"serving"/);
  });
  afterAll(async () => {
    server.kill("SIGTERM");
    await server.exit();
    place.remove();
  });

  describe("reads", () => reads(suite));
  describe("creates", () => creates(suite));
  describe("deployments", () => deployments(suite));
  describe("changes", () => changes(suite));
  describe("waits and deletes", () => deletes(suite));
  describe("who may do what", () => access(suite));
}
