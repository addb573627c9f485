import { KubeConfig } from "@kubernetes/client-node";
import { expect, test } from "vitest";
import { given, KUBECONFIG, makeCertificate } from "./scenario.testing.ts";
import { renderKubeconfig } from "./render.ts";

test("what is rendered is read back, by us and by others", async () => {
  const [ca, clientCertificate] = await Promise.all([makeCertificate("ca"), makeCertificate("admin")]);
  const text = renderKubeconfig({
    name: "local",
    server: "https://127.0.0.1:6443",
    ca: ca.certificate,
    user: "admin",
    clientCertificate,
  });

  const access = await given({ files: { [KUBECONFIG]: text } }).load();
  const theirs = new KubeConfig();
  theirs.loadFromString(text);

  expect(access).toMatchObject({
    server: "https://127.0.0.1:6443",
    tls: { ca: ca.certificate },
    impersonation: {},
  });
  expect(await access.credentials.current()).toEqual({ clientCertificate });
  expect(theirs.getCurrentCluster()).toMatchObject({ name: "local", server: "https://127.0.0.1:6443" });
  expect(Buffer.from(theirs.getCurrentUser()?.keyData ?? "", "base64").toString()).toBe(
    clientCertificate.key,
  );
});

test("names that YAML 1.1 takes for something else are quoted", async () => {
  const { certificate, key } = await makeCertificate("x");

  const text = renderKubeconfig({
    name: "on",
    server: "https://127.0.0.1:6443",
    ca: certificate,
    user: "1e3",
    clientCertificate: { certificate, key },
  });

  expect(text).toContain('name: "on"');
  expect(text).toContain('user: "1e3"');
});
