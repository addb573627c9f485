import { beforeAll, describe, expect, test } from "vitest";
import { createSeededRandom } from "../../base/seeded-random.ts";
import { SimScheduler } from "../../sim/scheduler.ts";
import type { ClientCertificate } from "../transport/access.ts";
import { base64, given, KUBECONFIG, kubeconfig, makeCertificate } from "./scenario.testing.ts";
import type { ProgramResult, ProgramRun } from "./world.ts";

let mine: ClientCertificate;
beforeAll(async () => {
  mine = await makeCertificate("mine");
});

const V1 = "client.authentication.k8s.io/v1";
const EPOCH_MS = Date.UTC(2026, 0, 1);

function execCredential(status: Record<string, unknown>, { apiVersion = V1 } = {}): { stdout: string } {
  return { stdout: JSON.stringify({ apiVersion, kind: "ExecCredential", status }) };
}

/** What the plugin prints: `token-1`, `token-2`, … a run, each with `lifeMs` to live. */
function tokens({ lifeMs }: { lifeMs?: number } = {}) {
  return (run: number, nowMs: number) =>
    execCredential({
      token: `token-${run}`,
      ...(lifeMs === undefined
        ? {}
        : { expirationTimestamp: new Date(EPOCH_MS + nowMs + lifeMs).toISOString() }),
    });
}

type Answer = (run: number, nowMs: number) => Partial<ProgramResult> | Promise<Partial<ProgramResult>>;

async function pluginThat(
  answer: Answer,
  {
    exec = {},
    cluster = {},
    user = {},
    env = {},
    interactive = false,
    file = KUBECONFIG,
  }: {
    exec?: Record<string, unknown>;
    cluster?: Record<string, unknown>;
    user?: Record<string, unknown>;
    env?: Record<string, string>;
    interactive?: boolean;
    file?: string;
  } = {},
) {
  const scheduler = new SimScheduler(createSeededRandom("exec"));
  const entry = { apiVersion: V1, command: "login", interactiveMode: "IfAvailable", ...exec };
  const scene = given({
    files: { [file]: kubeconfig({ cluster, user: { exec: entry, ...user } }) },
    env: { ...env, KUBECONFIG: file },
    clock: scheduler.createClock(),
  });
  scene.world.interactive = interactive;
  const runs: ProgramRun[] = [];
  for (const command of ["login", "/home/me/.kube/bin/login", "./login"]) {
    scene.world.programs.set(command, (run) => answer(runs.push(run), scheduler.nowMs));
  }
  const { credentials } = await scene.load();
  return {
    ...scene,
    scheduler,
    runs,
    credentials,
    token: async () => (await credentials.current()).authorization?.replace("Bearer ", ""),
  };
}

describe("how a plugin is run", () => {
  test("only when a request needs it, with the kubeconfig's arguments and variables", async () => {
    const exec = { args: ["get", "--cluster", "a b"], env: [{ name: "PROFILE", value: "dev" }] };
    const { runs, token } = await pluginThat(tokens(), { exec, env: { PATH: "/bin", PROFILE: "x" } });
    expect(runs).toHaveLength(0);

    expect(await token()).toBe("token-1");

    expect(runs).toMatchObject([{ command: "login", args: ["get", "--cluster", "a b"], interactive: false }]);
    expect(runs[0]?.env).toMatchObject({ PATH: "/bin", PROFILE: "dev" });
  });

  test("without provideClusterInfo it learns nothing of the cluster", async () => {
    const { runs, token } = await pluginThat(tokens());

    await token();

    const info: unknown = JSON.parse(runs[0]?.env["KUBERNETES_EXEC_INFO"] ?? "");
    expect(info).toEqual({ apiVersion: V1, kind: "ExecCredential", spec: { interactive: false } });
  });

  test("with it the plugin gets the cluster and what its extension says", async () => {
    const cluster = {
      "certificate-authority-data": base64(mine.certificate),
      "tls-server-name": "kubernetes",
      "proxy-url": "http://proxy.example",
      extensions: [{ name: "client.authentication.k8s.io/exec", extension: { audience: "a-1" } }],
    };
    const { runs, token } = await pluginThat(tokens(), {
      cluster,
      exec: { provideClusterInfo: true },
      interactive: true,
    });

    await token();

    const info: unknown = JSON.parse(runs[0]?.env["KUBERNETES_EXEC_INFO"] ?? "");
    expect(info).toEqual({
      apiVersion: V1,
      kind: "ExecCredential",
      spec: {
        cluster: {
          server: "https://dev.example:6443",
          "certificate-authority-data": base64(mine.certificate),
          "tls-server-name": "kubernetes",
          "proxy-url": "http://proxy.example",
          config: { audience: "a-1" },
        },
        interactive: true,
      },
    });
  });

  for (const [mode, terminal, interactive] of [
    ["Never", true, false],
    ["IfAvailable", false, false],
    ["IfAvailable", true, true],
    ["Always", true, true],
  ] as const) {
    test(`${mode} ${terminal ? "with" : "without"} a terminal: ${interactive ? "may" : "may not"} ask`, async () => {
      const scene = await pluginThat(tokens(), { exec: { interactiveMode: mode }, interactive: terminal });

      await scene.token();

      expect(scene.runs[0]?.interactive).toBe(interactive);
    });
  }

  test("v1beta1 needs no interactiveMode", async () => {
    const apiVersion = "client.authentication.k8s.io/v1beta1";
    const answer = () => execCredential({ token: "beta" }, { apiVersion });

    const { token } = await pluginThat(answer, { exec: { apiVersion, interactiveMode: null } });

    expect(await token()).toBe("beta");
  });

  for (const [file, command, started] of [
    [KUBECONFIG, "login", "login"],
    [KUBECONFIG, "bin/login", "/home/me/.kube/bin/login"],
    [KUBECONFIG, "/usr/bin/../../login", "/usr/bin/../../login"],
    ["config", "./login", "./login"], // joined it would be `login`, and be looked up in PATH
  ] as const) {
    test(`command ${command} in ${file} starts ${started}`, async () => {
      const { world, runs, token } = await pluginThat(tokens(), { file, exec: { command } });
      world.programs.set("/usr/bin/../../login", (run) => execCredential({ token: `t${runs.push(run)}` }));

      await token();

      expect(runs[0]?.command).toBe(started);
    });
  }

  test("a token in the kubeconfig wins, and the plugin is never run", async () => {
    const { runs, token, warnings } = await pluginThat(tokens(), { user: { token: "written" } });

    expect(await token()).toBe("written");

    expect(runs).toHaveLength(0);
    expect(warnings()).toEqual(["exec is not run, because the user has a token or password"]);
  });

  test("a client certificate comes with its key", async () => {
    const status = { clientCertificateData: mine.certificate, clientKeyData: mine.key };

    const { credentials } = await pluginThat(() => execCredential(status));

    expect(await credentials.current()).toEqual({ clientCertificate: mine });
  });
});

describe("a certificate in the kubeconfig beside a plugin", () => {
  test("stays, and only the plugin's token is added to it", async () => {
    const { certificate, key } = await makeCertificate("from the plugin");
    const answer = () =>
      execCredential({ token: "t", clientCertificateData: certificate, clientKeyData: key });
    const user = { "client-certificate-data": base64(mine.certificate), "client-key-data": base64(mine.key) };

    const { credentials } = await pluginThat(answer, { user });

    expect(await credentials.current()).toEqual({ authorization: "Bearer t", clientCertificate: mine });
  });
});

describe("how long an answer is kept", () => {
  test("without an expiry until it is rejected", async () => {
    const { token, credentials, scheduler, runs } = await pluginThat(tokens());
    const first = await credentials.current();
    await scheduler.runFor(86_400_000);
    expect(await token()).toBe("token-1");

    expect(credentials.rejected(first)).toBe(true);
    expect(await token()).toBe("token-2");

    expect(runs).toHaveLength(2);
  });

  test("with an expiry it is renewed in the background a minute before", async () => {
    const { token, scheduler, runs } = await pluginThat(tokens({ lifeMs: 3_600_000 }));
    await token();
    await scheduler.runFor(3_540_000 - 1);
    expect(await token()).toBe("token-1");
    expect(runs).toHaveLength(1);

    await scheduler.runFor(1);
    expect(await token()).toBe("token-1");
    await scheduler.runFor(0);

    expect(await token()).toBe("token-2");
    expect(runs).toHaveLength(2);
  });

  test("after an idle hour the first request waits for a new one", async () => {
    const { token, scheduler } = await pluginThat(tokens({ lifeMs: 600_000 }));
    await token();

    await scheduler.runFor(3_600_000);

    expect(await token()).toBe("token-2");
  });

  test("an early renewal that fails is no failure while the old one is good", async () => {
    const good = tokens({ lifeMs: 3_600_000 });
    const { token, scheduler, warnings } = await pluginThat((run, nowMs) =>
      run === 2 ? { exitCode: 1 } : good(run, nowMs),
    );
    await token();

    await scheduler.runFor(3_550_000);
    expect(await token()).toBe("token-1");
    await scheduler.runFor(1_000);
    expect(await token()).toBe("token-1");
    await scheduler.runFor(0);

    expect(await token()).toBe("token-3");
    expect(warnings()).toEqual(["credential plugin failed"]);
  });

  test("a plugin whose answers are always over is run every 10 s, not at every request", async () => {
    const { token, scheduler, runs } = await pluginThat(tokens({ lifeMs: -60_000 }));

    for (let second = 0; second < 60; second++) {
      await token();
      await scheduler.runFor(1_000);
    }

    expect(runs).toHaveLength(6);
  });

  test("requests that arrive together share one run", async () => {
    const { token, runs } = await pluginThat(tokens());

    const answers = await Promise.all(Array.from({ length: 50 }, () => token()));

    expect(new Set(answers)).toEqual(new Set(["token-1"]));
    expect(runs).toHaveLength(1);
  });

  test("a request that gives up does not take the run from the others", async () => {
    let finish: (result: Partial<ProgramResult>) => void = () => undefined;
    const { credentials, token } = await pluginThat(() => new Promise((resolve) => (finish = resolve)));
    const deadline = new AbortController();
    const impatient = credentials.current(deadline.signal);
    const patient = token();

    deadline.abort(new Error("gave up"));
    await expect(impatient).rejects.toThrow("gave up");
    finish(tokens()(1, 0));

    expect(await patient).toBe("token-1");
  });
});

describe("after a 401", () => {
  test("fifty requests with one rejected credential cause one run", async () => {
    const { credentials, token, runs } = await pluginThat(tokens());
    const first = await credentials.current();

    const retries = await Promise.all(
      Array.from({ length: 50 }, async () => (credentials.rejected(first) ? token() : "gave up")),
    );

    expect(new Set(retries)).toEqual(new Set(["token-2"]));
    expect(runs).toHaveLength(2);
  });

  test("a plugin whose every answer is rejected is run less and less often", async () => {
    const { credentials, scheduler, runs } = await pluginThat(tokens());

    for (let second = 0; second < 600; second++) {
      const credential = await credentials.current();
      if (credentials.rejected(credential)) credentials.rejected(await credentials.current());
      await scheduler.runFor(1_000);
    }

    // 1 + 2 + 4 + … + 32 s, then once a minute: 6 runs in the first minute and 9 in the other nine.
    expect(runs.length).toBeGreaterThanOrEqual(15);
    expect(runs.length).toBeLessThanOrEqual(18);
  });

  test("a credential that worked for a minute is replaced at once, whatever happened before", async () => {
    const { credentials, token, scheduler } = await pluginThat(tokens());
    for (let round = 1; round <= 20; round++) {
      const credential = await credentials.current();
      await scheduler.runFor(60_000);

      expect(credentials.rejected(credential)).toBe(true);
      expect(await token()).toBe(`token-${round + 1}`);
    }
  });
});

describe("a plugin that fails", () => {
  const place = `${KUBECONFIG}: users[name=admin].user.exec: credential plugin login`;
  for (const [what, answer, problem] of [
    [
      "ends with an error",
      { exitCode: 3, stderr: "please log in\n" },
      "ended with exit code 3: please log in",
    ],
    ["is killed", { exitCode: undefined }, "was killed by a signal and said nothing; run it by hand"],
    ["prints no JSON", { stdout: "SECRET" }, "did not print a JSON object"],
    [
      "prints something else",
      { stdout: '{"kind":"SECRET"}' },
      "printed an object whose kind is not ExecCredential",
    ],
    [
      "speaks another version",
      execCredential({ token: "SECRET" }, { apiVersion: "v2" }),
      "printed another apiVersion",
    ],
    [
      "prints no status",
      { stdout: JSON.stringify({ apiVersion: V1, kind: "ExecCredential" }) },
      "without status",
    ],
    ["prints an empty status", execCredential({}), "printed neither status.token nor"],
    ["prints a number", execCredential({ token: 5 }), "printed a status.token that is not a text"],
    ["prints a token of two lines", execCredential({ token: "SECRET\nx" }), "no HTTP header can carry"],
    ["forgets the key", execCredential({ clientCertificateData: "SECRET" }), "printed only one of"],
    [
      "prints no PEM",
      execCredential({ clientCertificateData: "SECRET", clientKeyData: "SECRET" }),
      "status.clientCertificateData that holds no PEM certificate",
    ],
    [
      "prints a strange time",
      execCredential({ token: "SECRET", expirationTimestamp: "tomorrow" }),
      "status.expirationTimestamp that is not an RFC 3339 time",
    ],
    ["prints too much", { stdout: "SECRET".repeat(200_000) }, "printed more than 1048576 bytes"],
    [
      "says a secret on stderr",
      { exitCode: 1, stderr: "sent Authorization: Bearer SECRET-SECRET" },
      "ended with exit code 1: sent Authorization: Bearer [redacted]",
    ],
  ] as const) {
    test(`because it ${what} says so`, async () => {
      const { credentials } = await pluginThat(() => answer);

      const error = (await credentials.current().catch((error: unknown) => error)) as Error;

      expect(error).toMatchObject({ code: "BadConfig" });
      expect(error.message).toContain(place);
      expect(error.message).toContain(problem);
      expect(error.message).not.toContain("SECRET");
    });
  }

  test("because it is not installed passes on the install hint", async () => {
    const exec = { command: "gone", installHint: "Install it with: pkg add gone" };
    const { credentials } = await pluginThat(tokens(), { exec });

    await expect(credentials.current()).rejects.toThrow(
      "users[name=admin].user.exec: credential plugin gone was not found in PATH; Install it with: pkg add gone",
    );
  });

  test("because it hangs is stopped after a minute", async () => {
    const { credentials, scheduler, runs } = await pluginThat(() => new Promise(() => undefined));
    const asking = credentials.current().catch((error: unknown) => error);

    await scheduler.runFor(60_000);

    expect(await asking).toMatchObject({ message: expect.stringContaining("gave no answer within 60 s") });
    expect(runs[0]?.signal.aborted).toBe(true);
  });

  test("is not run again at request rate, and the error says when it will be", async () => {
    const { credentials, scheduler, runs } = await pluginThat(() => ({ exitCode: 1, stderr: "offline" }));

    for (let request = 0; request < 6_000; request++) {
      await credentials.current().catch(() => undefined);
      await scheduler.runFor(100);
    }

    // Ten minutes: at 0, 1, 3, 7, 15, 31 and 63 s, then once a minute.
    expect(runs.length).toBe(15);
    await expect(credentials.current()).rejects.toThrow(/exit code 1: offline; next try in \d+ s/);
  });

  test("is forgiven as soon as it works", async () => {
    const { token, scheduler } = await pluginThat((run, nowMs) =>
      run < 4 ? { exitCode: 1 } : tokens()(run, nowMs),
    );
    for (let second = 0; second < 7; second++) {
      await token().catch(() => undefined);
      await scheduler.runFor(1_000);
    }

    expect(await token()).toBe("token-4");
  });
});
