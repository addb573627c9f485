import { isAbsolute } from "node:path";
import { withDeadline, type Clock } from "../../base/clock.ts";
import { scrubText } from "../../base/redact.ts";
import { KubeError } from "../errors.ts";
import type { ClusterTarget } from "./cluster.ts";
import type { ExecAnswer } from "./exec-credentials.ts";
import { parseExecCredential } from "./exec-output.ts";
import type { Fields } from "./fields.ts";
import { commandRelativeTo } from "./paths.ts";
import type { Place } from "./problems.ts";
import { systemCode, type ConfigWorld, type ProgramResult } from "./world.ts";

/** A plugin that says nothing for a minute hangs; one that asks a person may take as long as a login does. */
const DEADLINE_MS = 60_000;
const INTERACTIVE_DEADLINE_MS = 300_000;

/** A credential with a certificate chain takes some KiB. */
const STDOUT_BYTES_MAX = 1024 * 1024;

/** The end of what the plugin said on stderr: enough for its error, short enough for a log line. */
const STDERR_SHOWN_MAX = 500;

const API_VERSIONS = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];

/** `users[].user.exec`, checked. */
interface ExecPlugin {
  readonly place: Place;
  readonly apiVersion: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly provideClusterInfo: boolean;
  readonly interactive: boolean;
  readonly installHint: string | undefined;
}

/** Undefined if it cannot be run: then a problem was added. */
export function readExecPlugin(world: ConfigWorld, exec: Fields): ExecPlugin | undefined {
  const apiVersion = readApiVersion(exec);
  const command = exec.string("command");
  if (!exec.isSet("command"))
    exec.complain("command", "is missing; name the program that prints the credential");
  const args = exec.strings("args");
  const env = readEnv(exec);
  const provideClusterInfo = exec.boolean("provideClusterInfo");
  const interactive = readInteractive(world, exec, apiVersion);
  const installHint = exec.string("installHint");
  if (apiVersion === undefined || command === undefined) return undefined;
  return {
    place: exec.place,
    apiVersion,
    command: commandRelativeTo(exec.place.file, command),
    args,
    env,
    provideClusterInfo,
    interactive,
    installHint,
  };
}

function readApiVersion(exec: Fields): string | undefined {
  const apiVersion = exec.string("apiVersion");
  if (apiVersion !== undefined && API_VERSIONS.includes(apiVersion)) return apiVersion;
  const known = API_VERSIONS.join(" or ");
  if (apiVersion !== undefined) {
    exec.complain(
      "apiVersion",
      `is ${apiVersion}, which is not spoken here; update the plugin and write ${known}`,
    );
  } else if (!exec.isSet("apiVersion")) {
    exec.complain("apiVersion", `is missing; write ${known}, whichever the plugin speaks`);
  }
  return undefined;
}

function readEnv(exec: Fields): Record<string, string> {
  const env: Record<string, string> = {};
  for (const item of exec.maps("env")) {
    const name = item.string("name");
    const value = item.string("value") ?? "";
    if (name !== undefined) env[name] = value;
    else if (!item.isSet("name")) item.complain("name", "is missing; name the variable to set");
  }
  return env;
}

/** Whether this run may ask a person. v1 demands that the kubeconfig says so; v1beta1 defaults to IfAvailable. */
function readInteractive(world: ConfigWorld, exec: Fields, apiVersion: string | undefined): boolean {
  const isBeta = apiVersion === "client.authentication.k8s.io/v1beta1";
  const mode = exec.string("interactiveMode") ?? (isBeta ? "IfAvailable" : undefined);
  switch (mode) {
    case "Never":
      return false;
    case "IfAvailable":
      return world.interactive;
    case "Always":
      if (!world.interactive) {
        exec.complain(
          "interactiveMode",
          "is Always, but there is no terminal; log in beforehand and use IfAvailable",
        );
      }
      return world.interactive;
    case undefined:
      if (!exec.isSet("interactiveMode")) {
        exec.complain("interactiveMode", "is missing; write Never, IfAvailable or Always");
      }
      return false;
    default:
      exec.complain("interactiveMode", `is ${mode}; it can be Never, IfAvailable or Always`);
      return false;
  }
}

/** Runs the plugin once. Every failure is a BadConfig that names the file, the field and the program. */
export async function runExecPlugin(
  { world, clock }: { world: ConfigWorld; clock: Clock },
  plugin: ExecPlugin,
  target: ClusterTarget,
): Promise<ExecAnswer> {
  const ms = plugin.interactive ? INTERACTIVE_DEADLINE_MS : DEADLINE_MS;
  const onDeadline = () =>
    failure(plugin, `gave no answer within ${ms / 1_000} s and was stopped; run it by hand`);
  const result = await withDeadline(clock, { ms, onDeadline }, (signal) =>
    world
      .runProgram({
        command: plugin.command,
        args: plugin.args,
        env: pluginEnvironment(world, plugin, target),
        maxStdoutBytes: STDOUT_BYTES_MAX,
        interactive: plugin.interactive,
        signal,
      })
      .catch((error: unknown) => {
        throw signal.aborted ? onDeadline() : startFailure(plugin, error);
      }),
  );
  if (result.exitCode !== 0) throw failure(plugin, exitWords(result));
  return parseExecCredential(plugin.apiVersion, result.stdout, (problem) => failure(plugin, problem));
}

function pluginEnvironment(
  world: ConfigWorld,
  plugin: ExecPlugin,
  target: ClusterTarget,
): Record<string, string> {
  const inherited = Object.entries(world.env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  return {
    ...Object.fromEntries(inherited),
    ...plugin.env,
    KUBERNETES_EXEC_INFO: JSON.stringify(execInfo(plugin, target)),
  };
}

/** What the plugin learns of us; the cluster only where the kubeconfig says so. */
function execInfo(plugin: ExecPlugin, target: ClusterTarget): unknown {
  const { server, tls, proxyUrl, execConfig } = target;
  const cluster = {
    server,
    "tls-server-name": tls.serverName,
    "insecure-skip-tls-verify": tls.insecureSkipVerify,
    "certificate-authority-data":
      tls.ca === undefined ? undefined : Buffer.from(tls.ca, "utf8").toString("base64"),
    "proxy-url": proxyUrl,
    config: execConfig,
  };
  return {
    apiVersion: plugin.apiVersion,
    kind: "ExecCredential",
    spec: { ...(plugin.provideClusterInfo ? { cluster } : {}), interactive: plugin.interactive },
  };
}

function startFailure(plugin: ExecPlugin, error: unknown): KubeError {
  const code = systemCode(error);
  if (code === "EFBIG")
    return failure(plugin, `printed more than ${STDOUT_BYTES_MAX} bytes; that is no credential`);
  if (code === "EACCES") return failure(plugin, "is not executable by this user; change its mode");
  if (code !== "ENOENT")
    return failure(plugin, `could not be started (${code ?? "unknown error"}); run it by hand`);
  const where = isAbsolute(plugin.command) ? "does not exist" : "was not found in PATH";
  return failure(plugin, `${where}; ${plugin.installHint?.trim() ?? "install it or correct the command"}`);
}

function exitWords({ exitCode, stderr }: ProgramResult): string {
  const end = exitCode === undefined ? "was killed by a signal" : `ended with exit code ${exitCode}`;
  const said = scrubText(stderr).trim().slice(-STDERR_SHOWN_MAX);
  return said === "" ? `${end} and said nothing; run it by hand to see why` : `${end}: ${said}`;
}

function failure({ place, command }: ExecPlugin, problem: string): KubeError {
  return new KubeError(
    "BadConfig",
    `${place.file}: ${place.field ?? "exec"}: credential plugin ${command} ${problem}`,
  );
}
