import { stringify } from "yaml";
import type { ClientCertificate } from "../transport/access.ts";

/** A kubeconfig with one cluster, one user and the context that joins them. It contains a key: write it with mode 0600. */
export function renderKubeconfig({
  name,
  server,
  ca,
  user,
  clientCertificate,
}: {
  /** Of the cluster and the context. */
  name: string;
  server: string;
  /** PEM. */
  ca: string;
  user: string;
  clientCertificate: ClientCertificate;
}): string {
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name, cluster: { server, "certificate-authority-data": toBase64(ca) } }],
    users: [
      {
        name: user,
        user: {
          "client-certificate-data": toBase64(clientCertificate.certificate),
          "client-key-data": toBase64(clientCertificate.key),
        },
      },
    ],
    contexts: [{ name, context: { cluster: name, user } }],
    "current-context": name,
  };
  // Go's YAML is 1.1: a cluster called `on` or `1e3` must come back as text.
  return stringify(config, { lineWidth: 0, version: "1.1" });
}

function toBase64(pem: string): string {
  return Buffer.from(pem, "utf8").toString("base64");
}
