import { beforeAll, describe, expect, test } from "vitest";
import { anonymous, type ClientCertificate } from "../transport/access.ts";
import { base64, given, KUBECONFIG, kubeconfig, makeCertificate } from "./scenario.testing.ts";

let ca: ClientCertificate;
beforeAll(async () => {
  ca = await makeCertificate("ca");
});

describe("where the configuration comes from", () => {
  const files = {
    "/explicit": kubeconfig({ name: "explicit" }),
    "/one": kubeconfig({ name: "one" }),
    [KUBECONFIG]: kubeconfig({ name: "home" }),
  };
  const pod = {
    "/var/run/secrets/kubernetes.io/serviceaccount/token": "pod-token\n",
    "/var/run/secrets/kubernetes.io/serviceaccount/namespace": "mooring",
  };
  const inPod = { KUBERNETES_SERVICE_HOST: "10.0.0.1", KUBERNETES_SERVICE_PORT: "443" };

  for (const [claim, env, options, server] of [
    [
      "an explicit file wins over everything",
      { KUBECONFIG: "/one" },
      { kubeconfig: "/explicit" },
      "explicit",
    ],
    ["KUBECONFIG wins over the home directory", { KUBECONFIG: "/one" }, {}, "one"],
    ["files of KUBECONFIG that do not exist are skipped", { KUBECONFIG: "/gone::/one" }, {}, "one"],
    ["without KUBECONFIG it is the home directory's", {}, {}, "home"],
    ["an empty KUBECONFIG counts as none", { KUBECONFIG: "" }, {}, "home"],
    ["a pod with a kubeconfig uses the kubeconfig", inPod, {}, "home"],
  ] as const) {
    test(claim, async () => {
      const access = await given({ files: { ...files, ...pod }, env }).load(options);

      expect(access.server).toBe(`https://${server}.example:6443`);
    });
  }

  test("a pod without a kubeconfig uses its service account", async () => {
    const { load } = given({
      files: { ...pod, "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt": ca.certificate },
      env: inPod,
    });

    const access = await load();

    expect(access).toMatchObject({
      server: "https://10.0.0.1",
      tls: { ca: ca.certificate },
      namespace: "mooring",
    });
    expect(await access.credentials.current()).toEqual({ authorization: "Bearer pod-token" });
  });

  test("a pod whose kubeconfig is an empty file uses its service account too", async () => {
    const access = await given({ files: { ...pod, [KUBECONFIG]: "" }, env: inPod }).load();

    expect(access.server).toBe("https://10.0.0.1");
  });

  test("the API server of an IPv6 cluster is put in brackets", async () => {
    const env = { KUBERNETES_SERVICE_HOST: "fd00::1", KUBERNETES_SERVICE_PORT: "6443" };

    const access = await given({ files: pod, env }).load();

    expect(access.server).toBe("https://[fd00::1]:6443");
  });

  test("a pod without a token is told which file is missing", async () => {
    const loading = given({ env: inPod }).load();

    await expect(loading).rejects.toThrow(
      /serviceaccount\/token: there is no file .*automountServiceAccountToken/,
    );
  });

  test("with nothing anywhere the error says where it looked and what to do", async () => {
    const loading = given({ env: { KUBECONFIG: "/a:/b" } }).load();

    await expect(loading).rejects.toMatchObject({ code: "BadConfig" });
    await expect(loading).rejects.toThrow(
      /\/a \(from KUBECONFIG\), \/b .*KUBERNETES_SERVICE_HOST.*--kubeconfig/,
    );
  });

  test("a server alone is enough, and is anonymous", async () => {
    const access = await given({}).load({ server: "http://127.0.0.1:8080" });

    expect(access).toEqual({
      server: "http://127.0.0.1:8080",
      tls: {},
      credentials: anonymous,
      impersonation: {},
    });
  });

  test("a server given with a kubeconfig replaces the cluster's address and nothing else", async () => {
    const text = kubeconfig({ user: { token: "t" }, context: { namespace: "web" } });

    const access = await given({ files: { [KUBECONFIG]: text } }).load({ server: "https://10.1.1.1:6443/" });

    expect(access).toMatchObject({ server: "https://10.1.1.1:6443", namespace: "web" });
    expect(await access.credentials.current()).toEqual({ authorization: "Bearer t" });
  });
});

describe("several files", () => {
  test("the first to name a user wins whole: fields of two entries are never mixed", async () => {
    const first = kubeconfig({ user: { token: "first" } });
    const second = kubeconfig({ user: { token: "second", as: "root" }, context: { namespace: "second" } });

    const access = await given({ files: { "/1": first, "/2": second }, env: { KUBECONFIG: "/1:/2" } }).load();

    expect(await access.credentials.current()).toEqual({ authorization: "Bearer first" });
    expect(access.impersonation).toEqual({});
    expect(access.namespace).toBeUndefined();
  });

  test("a context in one file may join a cluster and a user of others", async () => {
    const files = {
      "/cluster": "clusters: [{name: c, cluster: {server: 'https://c.example'}}]",
      "/user": "users: [{name: u, user: {token: t}}]",
      "/context": "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x",
    };

    const access = await given({ files, env: { KUBECONFIG: "/cluster:/user:/context" } }).load();

    expect(access.server).toBe("https://c.example");
    expect(await access.credentials.current()).toEqual({ authorization: "Bearer t" });
  });

  test("the first current-context counts, and one given by name counts more", async () => {
    const files = { "/1": kubeconfig({ name: "one" }), "/2": kubeconfig({ name: "two" }) };
    const { load } = given({ files, env: { KUBECONFIG: "/1:/2" } });

    expect((await load()).server).toBe("https://one.example:6443");
    expect((await load({ context: "two" })).server).toBe("https://two.example:6443");
  });

  test("a relative path is relative to the file that contains it", async () => {
    const files = {
      "/etc/kube/config": kubeconfig({
        cluster: { "certificate-authority": "pki/ca.crt" },
        user: { tokenFile: "../token" },
      }),
      "/etc/kube/pki/ca.crt": ca.certificate,
      "/etc/token": "from-file",
    };

    const access = await given({ files, env: { KUBECONFIG: "/none:/etc/kube/config" } }).load();

    expect(access.tls.ca).toBe(ca.certificate);
    expect(await access.credentials.current()).toEqual({ authorization: "Bearer from-file" });
  });
});

describe("the cluster", () => {
  const withCluster = async (cluster: Record<string, unknown>, env: Record<string, string> = {}) =>
    given({ files: { [KUBECONFIG]: kubeconfig({ cluster }) }, env }).load();

  for (const [written, server] of [
    ["https://api.example:6443", "https://api.example:6443"],
    ["https://api.example:443/", "https://api.example"],
    ["https://rancher.example/k8s/clusters/c-1/", "https://rancher.example/k8s/clusters/c-1"],
    ["https://[fd00::1]:6443?x=1#y", "https://[fd00::1]:6443"],
    ["http://127.0.0.1:8080", "http://127.0.0.1:8080"],
    ["api.example:8080", "http://api.example:8080"],
    ["127.0.0.1:8080", "http://127.0.0.1:8080"],
  ] as const) {
    test(`server ${written} is ${server}`, async () => {
      expect((await withCluster({ server: written })).server).toBe(server);
    });
  }

  test("a server without a scheme is https as soon as the cluster has a CA", async () => {
    const access = await withCluster({
      server: "api:6443",
      "certificate-authority-data": base64(ca.certificate),
    });

    expect(access.server).toBe("https://api:6443");
    expect(access.tls.ca).toBe(ca.certificate);
  });

  test("tls-server-name, insecure-skip-tls-verify and proxy-url are carried over", async () => {
    const access = await withCluster({
      "tls-server-name": "kubernetes",
      "insecure-skip-tls-verify": true,
      "proxy-url": "socks5://proxy.example:1080",
      "disable-compression": true,
    });

    expect(access.tls).toEqual({ serverName: "kubernetes", insecureSkipVerify: true });
    expect(access.proxyUrl).toBe("socks5://proxy.example:1080");
  });

  test("the environment's proxy serves where the kubeconfig names none", async () => {
    const env = { HTTPS_PROXY: "http://env.example:3128" };

    expect((await withCluster({}, env)).proxyUrl).toBe("http://env.example:3128");
    expect((await withCluster({ "proxy-url": "http://own.example" }, env)).proxyUrl).toBe(
      "http://own.example",
    );
  });

  test("a misspelt field is warned of, with its place", async () => {
    const scene = given({
      files: { [KUBECONFIG]: kubeconfig({ cluster: { "certificate-authority-dat": "x" } }) },
    });

    await scene.load();

    expect(scene.lines).toEqual([
      {
        level: "warn",
        message: "unknown field in kubeconfig is ignored",
        fields: { file: KUBECONFIG, field: "clusters[name=dev].cluster.certificate-authority-dat" },
      },
    ]);
  });
});

describe("formats", () => {
  test("JSON is a kubeconfig too, tabs and byte order mark included", async () => {
    const text = JSON.stringify(
      {
        clusters: [{ name: "c", cluster: { server: "https://json.example" } }],
        contexts: [{ name: "c", context: { cluster: "c" } }],
        "current-context": "c",
      },
      null,
      "\t",
    );

    const access = await given({ files: { [KUBECONFIG]: `\uFEFF${text}` } }).load();

    expect(access.server).toBe("https://json.example");
    expect(access.credentials).toBe(anonymous);
  });

  test("anchors and merge keys work, and only the first document counts", async () => {
    const text = `
clusters: [{name: c, cluster: &base {server: "https://a.example", tls-server-name: k}}, {name: d, cluster: {<<: *base, server: "https://d.example"}}]
contexts: [{name: x, context: {cluster: d}}]
current-context: x
---
current-context: y
`;

    const access = await given({ files: { [KUBECONFIG]: text } }).load();

    expect(access).toMatchObject({ server: "https://d.example", tls: { serverName: "k" } });
  });
});
