import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { createPromMetrics } from "../base/prom-metrics.ts";
import type { Random } from "../base/random.ts";
import { createAuthenticator } from "../apiserver/auth/authenticator.ts";
import { createAuthorizer, type AuthorizationMode } from "../apiserver/auth/authorizer.ts";
import { ensureBootstrapPolicy } from "../apiserver/auth/bootstrap.ts";
import { createServiceAccountTokens } from "../apiserver/auth/service-account-tokens.ts";
import { generateSigningKey, loadTokenKeys } from "../apiserver/auth/signing-key.ts";
import { parseStaticTokens } from "../apiserver/auth/static-tokens.ts";
import { createEngineControllers } from "../apiserver/controllers/engine-controllers.ts";
import type { ControllerName } from "../apiserver/controllers/selection.ts";
import { DEFAULT_ADDRESS } from "../apiserver/documents.ts";
import type { Guard } from "../apiserver/guard.ts";
import { createHandler } from "../apiserver/handler.ts";
import { createSystemNamespaces } from "../apiserver/namespaces.ts";
import { openLmdbStore, type LmdbStoreOptions } from "../apiserver/store/lmdb.ts";
import { StoreError, type ObjectStore } from "../apiserver/store/store.ts";
import { versionInfo } from "../apiserver/version.ts";
import { systemCode } from "../kube/config/world.ts";
import type { Handler } from "../kube/handler.ts";
import type { DataDirectory } from "./data-directory.ts";
import { ProcessError } from "./errors.ts";
import { productVersion } from "./product.ts";

/** The API server without its socket: the store on disk, who may do what, the handler, and the controllers beside it. */
export interface Engine {
  readonly handler: Handler;
  /** Tells `host:port` as clients reach it, which is known once somebody listens there, to all who ask. */
  announce(address: string): void;
  /** What clients inside the cluster trust from now on, in every namespace. */
  useRootCa(bundle: string): void;
  /** After the socket is closed: lets controllers finish, then the last commit. */
  stop(): Promise<void>;
}

export interface EngineDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

export interface EngineOptions {
  readonly directory: DataDirectory;
  /** PEM; see `useRootCa`. */
  readonly rootCa: string;
  readonly authorizationMode: AuthorizationMode;
  /** Lines of `token,user,uid,"group1,group2"`. */
  readonly tokenAuthFile?: string | undefined;
  readonly controllers?: ReadonlySet<ControllerName> | undefined;
}

/** How far back the store can tell. */
export type StoreOptions = Pick<LmdbStoreOptions, "historyMsMin" | "historyRevisionsMin" | "historyCharsMax">;

export async function openStore(
  { clock, log }: EngineDeps,
  directory: DataDirectory,
  options: StoreOptions = {},
): Promise<ObjectStore> {
  try {
    return await openLmdbStore({ clock, log }, { ...options, directory: join(directory.path, "store") });
  } catch (error) {
    // Damaged files are nobody's mistake in the code: the message says where they are and what to do.
    if (error instanceof StoreError) throw new ProcessError("BadDataDir", error.message, { cause: error });
    throw error;
  }
}

export async function startEngine(
  deps: EngineDeps,
  store: ObjectStore,
  options: EngineOptions,
): Promise<Engine> {
  const { clock, random, log } = deps;
  const metrics = createPromMetrics({ processMetrics: true });
  await ensureUnlessFull(log, () =>
    createSystemNamespaces({ store, clock, random: random.fork("system-namespaces") }),
  );
  await ensureUnlessFull(log, () =>
    ensureBootstrapPolicy({ store, clock, random: random.fork("bootstrap-policy") }),
  );
  const guard = await createGuard({ store, clock }, options);
  let reachedAt = DEFAULT_ADDRESS;
  const handler = createHandler(
    { store, clock, random, log, metrics, guard },
    {
      get serverAddress() {
        return reachedAt;
      },
      version: versionInfo({ version: productVersion(), platform: `${process.platform}/${process.arch}` }),
      renderMetrics: async () => ({ contentType: metrics.contentType, text: await metrics.render() }),
    },
  );
  const controllers = createEngineControllers(
    { store, clock, random, log, metrics },
    { rootCa: options.rootCa, controllers: options.controllers },
  );
  const stopping = new AbortController();
  const running = controllers.run(stopping.signal);
  return {
    handler,
    announce(address) {
      reachedAt = address;
      controllers.useAddress(address);
    },
    useRootCa: (bundle) => controllers.useRootCa(bundle),
    async stop() {
      stopping.abort(new Error("the API server is stopping"));
      await running;
      await store.close();
    },
  };
}

/**
 * What every cluster has is there since the first start, unless this version brings more. On a full disk it serves with
 * what is there, because deleting objects is a way to make room; the next start tries again.
 */
async function ensureUnlessFull(log: Logger, ensure: () => Promise<void>): Promise<void> {
  try {
    await ensure();
  } catch (error) {
    if (!(error instanceof StoreError) || error.code !== "Full") throw error;
    log.error(
      "the disk is full: started without some objects that every cluster has; make room and start again",
      {
        error: error.message,
      },
    );
  }
}

/** Certificates were checked by the socket; tokens and rights are checked here. */
async function createGuard(
  { store, clock }: { store: ObjectStore; clock: Clock },
  { directory, authorizationMode, tokenAuthFile }: EngineOptions,
): Promise<Guard> {
  const keys = loadTokenKeys([await ensureSigningKey(directory)]);
  const serviceAccounts = createServiceAccountTokens({ store, clock, keys });
  const staticTokens =
    tokenAuthFile === undefined ? undefined : parseStaticTokens(await readTokens(tokenAuthFile));
  const authenticator = createAuthenticator({
    serviceAccounts,
    ...(staticTokens === undefined ? {} : { staticTokens }),
  });
  return {
    authenticator,
    serviceAccounts,
    authorizer: createAuthorizer({ store }, { mode: authorizationMode }),
  };
}

/** Tokens outlive a restart, so the key that signed them has to. */
async function ensureSigningKey(directory: DataDirectory): Promise<string> {
  const kept = await directory.read("pki/sa.key");
  if (kept !== undefined) return kept;
  const key = await generateSigningKey();
  await directory.write("pki/sa.key", key);
  return key;
}

async function readTokens(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    const why = systemCode(error) ?? String(error);
    throw new ProcessError("BadFile", `cannot read --token-auth-file ${path}: ${why}`, { cause: error });
  }
}
