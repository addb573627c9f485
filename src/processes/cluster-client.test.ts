import { expect, test } from "vitest";
import { silentLogger } from "../base/log.ts";
import { createSeededRandom } from "../base/seeded-random.ts";
import type { ConfigWorld } from "../kube/config/world.ts";
import { SimScheduler } from "../sim/scheduler.ts";
import { findAccess } from "./cluster-client.ts";

const ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";
const CONFIG = JSON.stringify({
  clusters: [{ name: "c", cluster: { server: "http://last-looked-at:1" } }],
  contexts: [{ name: "c", context: { cluster: "c", user: "" } }],
  "current-context": "c",
});

function given(files: Readonly<Record<string, string>>, env: Readonly<Record<string, string>> = {}) {
  const world: ConfigWorld = {
    env: { KUBECONFIG: "/env", ...env },
    homeDir: "/home/me",
    interactive: false,
    async readFile(path) {
      const text = files[path];
      if (text === undefined) throw Object.assign(new Error(path), { code: "ENOENT" });
      return text;
    },
    runProgram: () => Promise.reject(new Error("no programs here")),
  };
  const clock = new SimScheduler(createSeededRandom(1)).createClock();
  return { world, clock, log: silentLogger };
}

test("a kubeconfig that is named is used", async () => {
  const access = await findAccess(given({ "/given": CONFIG }), "/given");

  expect(access.server).toBe("http://last-looked-at:1");
});

test("without one, the pod's account is used, whatever kubectl would use", async () => {
  const files = { "/env": CONFIG, "/home/me/.kube/config": CONFIG, [`${ACCOUNT}/token`]: "token" };
  const pod = { KUBERNETES_SERVICE_HOST: "10.0.0.1", KUBERNETES_SERVICE_PORT: "443" };

  const access = await findAccess(given(files, pod), undefined);

  expect(access.server).toBe("https://10.0.0.1");
  expect(await access.credentials.current()).toEqual({ authorization: "Bearer token" });
});

test("outside of a pod nothing is guessed: no controller beside the one of whatever cluster kubectl saw last", async () => {
  const files = { "/env": CONFIG, "/home/me/.kube/config": CONFIG };

  await expect(findAccess(given(files), undefined)).rejects.toThrow(/give --kubeconfig FILE/);
});
