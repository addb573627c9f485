import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { ClientCertificate, Credentials } from "../transport/access.ts";
import type { ClusterTarget } from "./cluster.ts";
import { combineCredentials, fixedCredentials } from "./combined-credentials.ts";
import { createExecCredentials } from "./exec-credentials.ts";
import { readExecPlugin, runExecPlugin } from "./exec-plugin.ts";
import type { Fields } from "./fields.ts";
import { createFileCredentials } from "./file-credentials.ts";
import { readPath } from "./paths.ts";
import {
  cannotRead,
  certificateEnd,
  certificateProblem,
  keyProblem,
  pairProblem,
  readPem,
  readPemAgain,
  type Pem,
} from "./pem.ts";
import { toBasic, toBearer } from "./token.ts";
import type { ConfigWorld } from "./world.ts";

export interface UserDeps {
  readonly world: ConfigWorld;
  readonly clock: Clock;
  readonly log: Logger;
}

export const USER_FIELDS: readonly string[] = [
  ...["client-certificate", "client-certificate-data", "client-key", "client-key-data"],
  ...["token", "tokenFile", "username", "password", "exec", "auth-provider", "extensions"],
  ...["as", "as-uid", "as-groups", "as-user-extra"],
];

/**
 * Everything a user has to show: a certificate and one kind of authorization. Problems are added to the fields'
 * collector; the caller throws them before the result is used.
 */
export async function readUser(deps: UserDeps, fields: Fields, target: ClusterTarget): Promise<Credentials> {
  refuseAuthProvider(fields);
  const certificate = await readCertificate(deps, fields);
  const authorization = (await readToken(deps, fields)) ?? readBasic(fields);
  const exec = readExec(deps, fields, target);
  const hasToken = fields.isSet("token") || fields.isSet("tokenFile");
  if (hasToken && (fields.isSet("username") || fields.isSet("password"))) {
    fields.complain(
      "username",
      "is given together with a token, but a request carries one of them; remove the other",
    );
  }
  if (exec !== undefined && authorization !== undefined) {
    // As client-go: what is written down wins over what would have to be run.
    deps.log.warn("exec is not run, because the user has a token or password", { ...fields.at("exec") });
  }
  const sources = [certificate, authorization ?? exec];
  return combineCredentials(sources.filter((source) => source !== undefined));
}

export function hasClientCertificate(fields: Fields): boolean {
  return fields.isSet("client-certificate") || fields.isSet("client-certificate-data");
}

function refuseAuthProvider(fields: Fields): void {
  if (!fields.isSet("auth-provider")) return;
  const name = fields.map("auth-provider")?.string("name") ?? "auth-provider";
  fields.complain(
    "auth-provider",
    `is not supported any more, here as in kubectl since 1.26; use exec with the credential plugin that replaces ${name}`,
  );
}

async function readCertificate(deps: UserDeps, fields: Fields): Promise<Credentials | undefined> {
  const certificate = await readPem(deps.world, fields, "client-certificate");
  const key = await readPem(deps.world, fields, "client-key");
  const hasKey = fields.isSet("client-key") || fields.isSet("client-key-data");
  if (hasClientCertificate(fields) && !hasKey) {
    fields.complain("client-key-data", "is missing, but a client certificate is given; add it or client-key");
  }
  if (hasKey && !hasClientCertificate(fields)) {
    fields.complain(
      "client-certificate-data",
      "is missing, but a client key is given; add it or client-certificate",
    );
  }
  if (certificate === undefined || key === undefined || !pairIsSound(fields, certificate, key))
    return undefined;
  warnIfOver(deps, fields, certificate);
  const files = [certificate.path, key.path].filter((path) => path !== undefined);
  const initial = { clientCertificate: { certificate: certificate.text, key: key.text } };
  if (files.length === 0) return fixedCredentials(initial);
  const read = async () => ({ clientCertificate: await readPairAgain(deps.world, certificate, key) });
  return createFileCredentials(deps, { files, initial, read });
}

function pairIsSound(fields: Fields, certificate: Pem, key: Pem): boolean {
  const certificateWrong = certificateProblem(certificate.text);
  if (certificateWrong !== undefined) fields.complain(certificate.field, certificateWrong);
  const keyWrong = keyProblem(key.text);
  if (keyWrong !== undefined) fields.complain(key.field, keyWrong);
  if (certificateWrong !== undefined || keyWrong !== undefined) return false;
  const pairWrong = pairProblem(certificate.text, key.text);
  if (pairWrong !== undefined) fields.complain(key.field, pairWrong);
  return pairWrong === undefined;
}

/** Only a warning: the clock that is wrong may be ours, and the server has the last word. */
function warnIfOver({ clock, log }: UserDeps, fields: Fields, certificate: Pem): void {
  const end = certificateEnd(certificate.text);
  if (end.getTime() > clock.wall().getTime()) return;
  log.warn("client certificate has expired", { ...fields.at(certificate.field), expired: end.toISOString() });
}

async function readPairAgain(world: ConfigWorld, first: Pem, second: Pem): Promise<ClientCertificate> {
  const certificate = await readPemAgain(world, first);
  const key = await readPemAgain(world, second);
  const problem = certificateProblem(certificate) ?? keyProblem(key) ?? pairProblem(certificate, key);
  if (problem !== undefined)
    throw new Error(`${first.path ?? first.field}, ${second.path ?? second.field}: ${problem}`);
  return { certificate, key };
}

/** A token takes some KiB. */
const TOKEN_BYTES_MAX = 64 * 1024;

async function readToken(deps: UserDeps, fields: Fields): Promise<Credentials | undefined> {
  const written = fields.string("token");
  const authorization = written === undefined ? undefined : toBearer(written);
  if (written !== undefined && authorization === undefined) {
    fields.complain("token", "contains blanks or other characters that no token has; copy it again");
  }
  const tokenFile = readPath(fields, "tokenFile");
  if (tokenFile !== undefined) return readTokenFile(deps, fields, tokenFile, authorization);
  return authorization === undefined ? undefined : fixedCredentials({ authorization });
}

/** As client-go: the file wins over `token`, which only bridges the time until the file appears. */
async function readTokenFile(
  deps: UserDeps,
  fields: Fields,
  path: string,
  fallback: string | undefined,
): Promise<Credentials | undefined> {
  try {
    return await createTokenFileCredentials(deps, path, fallback);
  } catch (error) {
    fields.complain("tokenFile", error instanceof UnusableToken ? error.message : cannotRead(path, error));
    return undefined;
  }
}

/** Rejects if the file cannot be read now and there is no fallback. */
export async function createTokenFileCredentials(
  deps: UserDeps,
  path: string,
  fallback?: string,
): Promise<Credentials> {
  const read = async () => {
    const authorization = toBearer(await deps.world.readFile(path, { maxBytes: TOKEN_BYTES_MAX }));
    if (authorization === undefined) throw new UnusableToken(path);
    return { authorization };
  };
  const initial = await read().catch((error: unknown) => {
    if (fallback === undefined) throw error;
    return { authorization: fallback };
  });
  return createFileCredentials(deps, { files: [path], initial, read });
}

export class UnusableToken extends Error {
  override readonly name = "UnusableToken";
  constructor(path: string) {
    super(`the file ${path} is empty or holds no token; have whoever writes it write it again`);
  }
}

function readBasic(fields: Fields): Credentials | undefined {
  const username = fields.string("username");
  const password = fields.string("password");
  if (username === undefined && password === undefined) return undefined;
  return fixedCredentials({ authorization: toBasic(username ?? "", password ?? "") });
}

function readExec(deps: UserDeps, fields: Fields, target: ClusterTarget): Credentials | undefined {
  const exec = fields.map("exec");
  const plugin = exec && readExecPlugin(deps.world, exec);
  if (plugin === undefined) return undefined;
  return createExecCredentials(deps, {
    name: plugin.command,
    run: () => runExecPlugin(deps, plugin, target),
  });
}
