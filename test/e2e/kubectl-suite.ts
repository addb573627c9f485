// What all parts of the kubectl suite share: one server, one kubectl, a namespace for each test.
import { serviceAccount } from "./kubectl-objects.ts";
import type { Kubectl } from "./kubectl.ts";

export interface Suite {
  readonly kubectl: Kubectl;
  /** kubectl's own folder, for files a test makes. */
  readonly home: string;
  /** The server's data directory. */
  readonly data: string;
  /** Creates objects in a namespace of their own, which also has the account that pods run as. */
  readonly given: (namespace: string, ...objects: object[]) => Promise<void>;
  /** One field of one object, as kubectl's jsonpath prints it. */
  readonly value: (namespace: string, object: string, path: string) => Promise<string>;
}

export function createSuite(kubectl: Kubectl, { home, data }: { home: string; data: string }): Suite {
  return {
    kubectl,
    home,
    data,
    async given(namespace, ...objects) {
      const itself = { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } };
      const all = [itself, serviceAccount(namespace, "runner"), ...objects];
      await kubectl.ok("create", "-f", kubectl.file(`given-${namespace}`, ...all));
    },
    value: (namespace, object, path) =>
      kubectl.ok("-n", namespace, "get", object, "-o", `jsonpath={${path}}`),
  };
}
