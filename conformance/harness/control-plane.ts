import { generateKeyPairSync, randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import type { Binaries } from "../peers/binaries.ts";
import { openApi, type Api } from "./api.ts";
import { freePort, type Program, type Stage } from "./stage.ts";

/** Far above the 3 to 5 s of a machine at rest. */
const READY_MS_MAX = 120_000;

/** A real etcd and kube-apiserver on loopback, with keys and a token that die with the stage. */
export interface ControlPlane {
  readonly kubeconfig: string;
  readonly serviceAccountKey: string;
  readonly api: Api;
  /** Ends one of them by this signal and starts it again where it was; resolves when the server is ready. */
  restart(which: "etcd" | "kube-apiserver", signal: NodeJS.Signals): Promise<void>;
  /** kube-controller-manager with these controllers only. */
  startManager(controllers: string): Promise<Program>;
  close(): Promise<void>;
}

/** Flags of kube-apiserver that come last win over those that are set here. */
export async function startControlPlane(
  stage: Stage,
  binaries: Binaries,
  moreFlags: readonly string[] = [],
): Promise<ControlPlane> {
  const programs = await binaries.need("etcd", "kube-apiserver");
  const ports = { client: await freePort(), peer: await freePort(), api: await freePort() };
  const secrets = await writeSecrets(stage);
  const starts = {
    etcd: () => stage.start("etcd", programs["etcd"] ?? "", etcdFlags(stage, ports)),
    "kube-apiserver": () =>
      stage.start("kube-apiserver", programs["kube-apiserver"] ?? "", [
        ...apiserverFlags(stage, ports),
        ...moreFlags,
      ]),
  };
  const running = { etcd: starts.etcd(), "kube-apiserver": starts["kube-apiserver"]() };
  const url = `https://127.0.0.1:${ports.api}`;
  const kubeconfig = stage.path("kubeconfig");
  const certificate = await stage.until("certificate of kube-apiserver", READY_MS_MAX, () =>
    readFile(stage.path("certs", "apiserver.crt"), "utf8"),
  );
  await writeFile(kubeconfig, kubeconfigText({ url, token: secrets.token, certificate }), { mode: 0o600 });
  const api = await openApi(kubeconfig);
  const ready = () =>
    stage.until("kube-apiserver ready", READY_MS_MAX, async () => {
      if (!running["kube-apiserver"].alive) throw new Error(await stage.obituary());
      // kube-controller-manager ends if it does not see this within 10 s, which a busy machine may take.
      await api.text("/healthz");
      return api.find("/api/v1/namespaces/default");
    });
  await ready();
  const serviceAccountKey = stage.path("sa.key");
  return {
    kubeconfig,
    serviceAccountKey,
    api,
    async restart(which, signal) {
      await running[which].end(signal);
      running[which] = starts[which]();
      await ready();
    },
    startManager: (controllers) =>
      startManager(stage, { binaries, kubeconfig, controllers, serviceAccountKey }),
    close: () => api.close(),
  };
}

async function writeSecrets(stage: Stage): Promise<{ readonly token: string }> {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
  const mode = { mode: 0o600 };
  await writeFile(stage.path("sa.key"), privateKey.export({ type: "pkcs1", format: "pem" }), mode);
  await writeFile(stage.path("sa.pub"), publicKey.export({ type: "spki", format: "pem" }), mode);
  const token = randomBytes(16).toString("hex");
  await writeFile(stage.path("tokens.csv"), `${token},admin,admin,"system:masters"\n`, mode);
  return { token };
}

interface Ports {
  readonly client: number;
  readonly peer: number;
  readonly api: number;
}

/** With fsync, as it comes: suites kill it and want everything back. */
function etcdFlags(stage: Stage, { client, peer }: Ports): string[] {
  const clients = `http://127.0.0.1:${client}`;
  const peers = `http://127.0.0.1:${peer}`;
  return [
    `--data-dir=${stage.path("etcd")}`,
    `--listen-client-urls=${clients}`,
    `--advertise-client-urls=${clients}`,
    `--listen-peer-urls=${peers}`,
    `--initial-advertise-peer-urls=${peers}`,
    `--initial-cluster=default=${peers}`,
    "--log-level=warn",
  ];
}

function apiserverFlags(stage: Stage, { client, api }: Ports): string[] {
  return [
    `--etcd-servers=http://127.0.0.1:${client}`,
    `--secure-port=${api}`,
    "--bind-address=127.0.0.1",
    "--advertise-address=127.0.0.1",
    `--cert-dir=${stage.path("certs")}`,
    "--service-cluster-ip-range=10.0.0.0/24",
    "--service-account-issuer=https://kubernetes.default.svc",
    `--service-account-key-file=${stage.path("sa.pub")}`,
    `--service-account-signing-key-file=${stage.path("sa.key")}`,
    `--token-auth-file=${stage.path("tokens.csv")}`,
    "--authorization-mode=RBAC",
    // Nobody here makes service accounts, or takes away the taint of a new node.
    "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
    // A resumed watch meets a history that is gone, which every 5 minutes it would hardly do.
    "--etcd-compaction-interval=10s",
    "--max-requests-inflight=2000",
    "--max-mutating-requests-inflight=1000",
  ];
}

/** The authority's certificate comes with it: the server is verified, not believed. */
export function kubeconfigText({
  url,
  token,
  certificate,
}: {
  url: string;
  token: string;
  certificate: string;
}): string {
  const authority = Buffer.from(certificate).toString("base64");
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "real", cluster: { server: url, "certificate-authority-data": authority } }],
    users: [{ name: "admin", user: { token } }],
    contexts: [{ name: "real", context: { cluster: "real", user: "admin" } }],
    "current-context": "real",
  });
}

export interface ManagerOptions {
  readonly binaries: Binaries;
  readonly kubeconfig: string;
  readonly controllers: string;
  readonly serviceAccountKey?: string | undefined;
  /** They come last and win over those that are set here. */
  readonly flags?: readonly string[];
}

export async function startManager(stage: Stage, options: ManagerOptions): Promise<Program> {
  const { binaries, kubeconfig, controllers, serviceAccountKey, flags = [] } = options;
  const programs = await binaries.need("kube-controller-manager");
  const port = await freePort();
  return stage.start("kube-controller-manager", programs["kube-controller-manager"] ?? "", [
    `--kubeconfig=${kubeconfig}`,
    `--authentication-kubeconfig=${kubeconfig}`,
    `--authorization-kubeconfig=${kubeconfig}`,
    `--controllers=${controllers}`,
    "--leader-elect=false",
    "--kube-api-qps=5000",
    "--kube-api-burst=5000",
    "--bind-address=127.0.0.1",
    `--secure-port=${port}`,
    `--cert-dir=${stage.path("manager-certs")}`,
    // Without it `*` stops at the controller of service accounts' tokens.
    ...(serviceAccountKey === undefined ? [] : [`--service-account-private-key-file=${serviceAccountKey}`]),
    ...flags,
  ]);
}

export async function startScheduler(
  stage: Stage,
  { binaries, kubeconfig }: Pick<ManagerOptions, "binaries" | "kubeconfig">,
): Promise<Program> {
  const programs = await binaries.need("kube-scheduler");
  const port = await freePort();
  return stage.start("kube-scheduler", programs["kube-scheduler"] ?? "", [
    `--kubeconfig=${kubeconfig}`,
    `--authentication-kubeconfig=${kubeconfig}`,
    `--authorization-kubeconfig=${kubeconfig}`,
    "--leader-elect=false",
    "--bind-address=127.0.0.1",
    `--secure-port=${port}`,
    `--cert-dir=${stage.path("scheduler-certs")}`,
  ]);
}
