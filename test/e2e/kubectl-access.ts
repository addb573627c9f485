// Who kubectl is and what it may do.
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Suite } from "./kubectl-suite.ts";

export function access({ kubectl, given, data }: Suite): void {
  test("create token makes one that signs its account in", async () => {
    await given("token");
    const token = (await kubectl.ok("-n", "token", "create", "token", "runner", "--duration=1h")).trim();
    const url = await kubectl.ok("config", "view", "-o", "jsonpath={.clusters[0].cluster.server}");
    const authority = join(data, "pki/ca.crt");

    const flags = ["--kubeconfig=/dev/null", `--server=${url}`, `--certificate-authority=${authority}`];
    const printed = await kubectl.ok("auth", "whoami", ...flags, `--token=${token}`);

    expect(printed).toMatch(/^Username +system:serviceaccount:token:runner$/m);
  });

  test("auth whoami knows the administrator", async () => {
    const printed = await kubectl.ok("auth", "whoami");

    expect(printed).toMatch(/^Username +admin$/m);
    expect(printed).toMatch(/^Groups +\[system:masters system:authenticated\]$/m);
  });

  test("auth can-i answers for oneself and, impersonating, for others", async () => {
    await given("can");
    const runner = "--as=system:serviceaccount:can:runner";
    const canI = (...args: string[]) => kubectl.run(["-n", "can", "auth", "can-i", ...args]);

    expect(await canI("create", "pods")).toMatchObject({ code: 0, stdout: "yes\n" });
    expect(await canI("list", "pods", runner)).toMatchObject({ code: 1, stdout: "no\n" });
    expect(await kubectl.refused("-n", "can", "get", "pods", runner)).toBe(
      'Error from server (Forbidden): pods is forbidden: User "system:serviceaccount:can:runner" cannot list resource "pods" in API group "" in the namespace "can"\n',
    );

    await kubectl.ok("-n", "can", "create", "role", "reader", "--verb=get,list", "--resource=pods");
    const binding = ["rolebinding", "runner-reads", "--role=reader", "--serviceaccount=can:runner"];
    await kubectl.ok("-n", "can", "create", ...binding);

    expect(await canI("list", "pods", runner)).toMatchObject({ code: 0, stdout: "yes\n" });
    expect(await canI("delete", "pods", runner)).toMatchObject({ code: 1, stdout: "no\n" });
  });
}
