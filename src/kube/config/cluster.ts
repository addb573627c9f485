import type { TlsOptions } from "../transport/access.ts";
import { environmentProxy } from "./environment-proxy.ts";
import type { Fields } from "./fields.ts";
import { certificateProblem, readPem } from "./pem.ts";
import { parseUrl } from "./urls.ts";
import type { ConfigWorld } from "./world.ts";

/** The server's side of a context. */
export interface ClusterTarget {
  readonly server: string;
  readonly tls: TlsOptions;
  readonly proxyUrl?: string;
  /** What the cluster's `client.authentication.k8s.io/exec` extension says to an exec plugin. */
  readonly execConfig?: unknown;
}

export const CLUSTER_FIELDS: readonly string[] = [
  "server",
  "certificate-authority",
  "certificate-authority-data",
  "insecure-skip-tls-verify",
  "tls-server-name",
  "proxy-url",
  "disable-compression",
  "extensions",
];

/** Undefined if the server's address is unusable: then a problem was added. */
export async function readCluster(
  world: ConfigWorld,
  fields: Fields,
  { server: override, userHasCertificate }: { server?: string | undefined; userHasCertificate: boolean },
): Promise<ClusterTarget | undefined> {
  const tls = await readTls(world, fields);
  // As client-go: a server written without a scheme is https as soon as anything speaks of certificates.
  const wantsTls = tls.ca !== undefined || tls.insecureSkipVerify === true || userHasCertificate;
  const server = readServer(fields, override, wantsTls ? "https" : "http");
  const proxyUrl =
    readProxyUrl(fields) ?? (server === undefined ? undefined : environmentProxy(world.env, server));
  const execConfig = readExecConfig(fields);
  if (server === undefined) return undefined;
  return {
    server,
    tls,
    ...(proxyUrl === undefined ? {} : { proxyUrl }),
    ...(execConfig === undefined ? {} : { execConfig }),
  };
}

async function readTls(world: ConfigWorld, fields: Fields): Promise<TlsOptions> {
  const ca = await readPem(world, fields, "certificate-authority");
  const problem = ca && certificateProblem(ca.text);
  if (problem !== undefined) fields.complain(ca?.field, problem);
  const insecureSkipVerify = fields.boolean("insecure-skip-tls-verify");
  if (
    insecureSkipVerify &&
    (fields.isSet("certificate-authority") || fields.isSet("certificate-authority-data"))
  ) {
    const problem =
      "is true although a certificate-authority is given, which would then be ignored; remove one of the two";
    fields.complain("insecure-skip-tls-verify", problem);
  }
  const serverName = fields.string("tls-server-name");
  return {
    ...(ca === undefined ? {} : { ca: ca.text }),
    ...(serverName === undefined ? {} : { serverName }),
    ...(insecureSkipVerify ? { insecureSkipVerify } : {}),
  };
}

function readServer(
  fields: Fields,
  override: string | undefined,
  defaultScheme: "http" | "https",
): string | undefined {
  const written = override ?? fields.string("server");
  const place = override === undefined ? fields.at("server") : { file: "the server given as an option" };
  if (written === undefined) {
    if (!fields.isSet("server"))
      fields.complain("server", "is missing; give the API server's address, https://host:port");
    return undefined;
  }
  const url = parseUrl(written, defaultScheme);
  const problem = url === undefined ? "is not an address; write https://host:port" : serverProblem(url);
  if (problem !== undefined) fields.problems.add(place, problem);
  // A query or fragment is dropped, as client-go does: requests bring their own.
  return url === undefined || problem !== undefined
    ? undefined
    : url.origin + url.pathname.replace(/\/+$/, "");
}

function serverProblem(url: URL): string | undefined {
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    return `has the scheme ${url.protocol}//; only https:// and http:// reach an API server`;
  }
  if (url.username !== "" || url.password !== "") {
    return "contains a user or password; put them into the user's username and password fields";
  }
  return undefined;
}

const PROXY_SCHEMES: readonly string[] = ["http:", "https:", "socks5:"];

function readProxyUrl(fields: Fields): string | undefined {
  const written = fields.string("proxy-url");
  if (written === undefined) return undefined;
  const url = parseUrl(written, undefined);
  if (url === undefined || url.hostname === "" || !PROXY_SCHEMES.includes(url.protocol)) {
    fields.complain(
      "proxy-url",
      "is not an address this can use; write http://, https:// or socks5://host:port",
    );
    return undefined;
  }
  return written;
}

function readExecConfig(fields: Fields): unknown {
  const extension = fields
    .maps("extensions")
    .find((item) => item.raw("name") === "client.authentication.k8s.io/exec");
  return extension?.raw("extension");
}
