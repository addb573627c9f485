import { randomBytes } from "node:crypto";
import { access, readFile, writeFile } from "node:fs/promises";
import { parse } from "yaml";
import { openApi, type Api } from "./api.ts";
import { kubeconfigText } from "./control-plane.ts";
import { startMooring } from "./mooring.ts";
import { freePort, type Stage } from "./stage.ts";

const READY_MS_MAX = 60_000;

/** `mooring apiserver` on a free port, with a data directory of the stage. */
export interface Embedded {
  readonly api: Api;
  /** Of the cluster's administrator. */
  readonly kubeconfig: string;
  /** Of one of the users that were asked for, who may do what the server's own roles let them. */
  kubeconfigOf(user: string): string;
  close(): Promise<void>;
}

interface EmbeddedOptions {
  readonly flags?: readonly string[];
  readonly users?: readonly string[];
}

export async function startEmbedded(
  stage: Stage,
  { flags = [], users = [] }: EmbeddedOptions = {},
): Promise<Embedded> {
  const tokens = new Map(users.map((user) => [user, randomBytes(16).toString("hex")]));
  const listed = [...tokens].map(([user, token]) => `${token},${user},${user},""\n`);
  await writeFile(stage.path("tokens.csv"), listed.join(""), { mode: 0o600 });
  const data = stage.path("data");
  startMooring(stage, "apiserver", [
    ...["--data-dir", data, "--listen", `127.0.0.1:${await freePort()}`],
    ...(users.length === 0 ? [] : ["--token-auth-file", stage.path("tokens.csv")]),
    ...flags,
  ]);
  const kubeconfig = stage.path("data", "admin.kubeconfig");
  await stage.until("kubeconfig of mooring apiserver", READY_MS_MAX, () =>
    access(kubeconfig).then(() => true),
  );
  const api = await openApi(kubeconfig);
  await stage.until("mooring apiserver ready", READY_MS_MAX, () => api.find("/api/v1/namespaces/default"));
  const { url, certificate } = await whereIs(kubeconfig);
  const kubeconfigOf = (user: string) => stage.path(`${user.replaceAll(":", "-")}.kubeconfig`);
  for (const [user, token] of tokens)
    await writeFile(kubeconfigOf(user), kubeconfigText({ url, token, certificate }), { mode: 0o600 });
  return { api, kubeconfig, kubeconfigOf, close: () => api.close() };
}

interface KubeconfigFile {
  readonly clusters: readonly [
    { readonly cluster: { readonly server: string; readonly "certificate-authority-data": string } },
  ];
}

async function whereIs(kubeconfig: string): Promise<{ readonly url: string; readonly certificate: string }> {
  const file = parse(await readFile(kubeconfig, "utf8")) as KubeconfigFile;
  const { cluster } = file.clusters[0];
  const certificate = Buffer.from(cluster["certificate-authority-data"], "base64").toString("utf8");
  return { url: cluster.server, certificate };
}
