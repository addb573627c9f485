import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import type { ClientCertificate } from "../transport/access.ts";
import { isKubeError } from "../errors.ts";
import { base64, given, KUBECONFIG, kubeconfig, makeCertificate } from "./scenario.testing.ts";

let [mine, other]: ClientCertificate[] = [];
beforeAll(async () => {
  [mine, other] = await Promise.all([makeCertificate("mine"), makeCertificate("other")]);
});

/** Why this kubeconfig is refused; undefined if it is not. Any error but BadConfig fails the test. */
async function refusal(text: string, files: Record<string, string> = {}): Promise<string | undefined> {
  try {
    await given({ files: { ...files, [KUBECONFIG]: text } }).load();
    return undefined;
  } catch (error) {
    if (isKubeError(error, "BadConfig")) return error.message;
    throw error;
  }
}

async function messageFor(text: string, files?: Record<string, string>): Promise<string> {
  return (await refusal(text, files)) ?? expect.unreachable("this kubeconfig must be refused");
}

describe("the file", () => {
  test("an explicit file that does not exist is named", async () => {
    const loading = given({}).load({ kubeconfig: "/nowhere/config" });

    await expect(loading).rejects.toThrow(
      "BadConfig: /nowhere/config: there is no file /nowhere/config; create it",
    );
  });

  test("an explicit file with nothing in it is not taken for a cluster", async () => {
    const env = { KUBERNETES_SERVICE_HOST: "10.0.0.1", KUBERNETES_SERVICE_PORT: "443" };

    const loading = given({ files: { "/empty": "" }, env }).load({ kubeconfig: "/empty" });

    await expect(loading).rejects.toThrow("/empty: has no clusters");
  });

  const bomb = ["a: &a [x, x, x, x, x, x, x, x, x, x]", ..."bcdefg".split("").map(expand)].join("\n");
  function expand(name: string): string {
    const before = String.fromCharCode(name.charCodeAt(0) - 1);
    return `${name}: &${name} [${Array(10).fill(`*${before}`).join(", ")}]`;
  }

  for (const [what, text, message] of [
    [
      "a YAML error names its line",
      "clusters:\n  - name: c\n   cluster: {}\n",
      /config: line 3, column \d+: /,
    ],
    ["an open quote names its line", 'users:\n- name: "a\n', /line \d, column \d+: a character is missing/],
    [
      "a key that appears twice",
      "kind: Config\nusers: []\nusers: []\n",
      /line 3, column 1: this key appears twice/,
    ],
    ["an alias bomb", bomb, /expands more than 100 aliases/],
    [
      "an alias without an anchor",
      "users: *nobody",
      /line 1, column 8: an alias|expands more than 100 aliases, or one/,
    ],
    ["ten thousand open brackets", "[".repeat(10_000), /nested too deeply|line 1/],
    ["a file above 8 MiB", "#".repeat(8 * 1024 * 1024 + 1), /far too large/],
    ["a list where the file should be a mapping", "- a", /config: is a list, not a kubeconfig/],
    ["some other kind of object", "kind: Pod", /config: kind: is Pod; this is not a kubeconfig/],
    ["some other version", "apiVersion: v2", /config: apiVersion: is v2; a kubeconfig has v1/],
    ["users as a mapping", "users: {admin: {}}", /config: users: is a mapping where a list belongs/],
    ["an entry without a name", "users: [{user: {}}]", /config: users\[0\].name: is missing/],
    ["an entry whose name is a number", "users: [{name: 7}]", /users\[0\].name: is a number where a text/],
    ["two users of one name", "users: [{name: a}, {name: a}]", /users\[name=a\]: appears twice in this file/],
  ] as const) {
    test(what, async () => {
      expect(await messageFor(text)).toMatch(message);
    });
  }
});

describe("names that lead nowhere list those that exist", () => {
  for (const [what, text, message] of [
    [
      "no current context",
      kubeconfig({ "current-context": "" }),
      `${KUBECONFIG}: current-context: is not set; set it, or choose a context by name: dev`,
    ],
    [
      "an unknown current context",
      kubeconfig({ "current-context": "prod" }),
      `${KUBECONFIG}: current-context: there is no context prod; there is: dev`,
    ],
    [
      "an unknown cluster",
      kubeconfig({ context: { cluster: "prod" } }),
      `${KUBECONFIG}: contexts[name=dev].context.cluster: names prod, which does not exist; there is: dev`,
    ],
    [
      "an unknown user",
      kubeconfig({ context: { user: "root" } }),
      `${KUBECONFIG}: contexts[name=dev].context.user: names root, which does not exist; there is: admin`,
    ],
    [
      "no cluster",
      kubeconfig({ context: { cluster: null } }),
      `${KUBECONFIG}: contexts[name=dev].context.cluster: is missing; name one of: dev`,
    ],
  ] as const) {
    test(what, async () => {
      expect(await messageFor(text)).toBe(`BadConfig: ${message}`);
    });
  }
});

describe("the cluster's fields", () => {
  for (const [field, value, problem] of [
    ["server", null, "is missing"],
    ["server", 6443, "is a number where a text belongs; put it in quotes"],
    ["server", "https://", "is not an address"],
    ["server", "ftp://api.example", "has the scheme ftp://"],
    ["server", "https://me:SECRET@api.example", "contains a user or password"],
    ["certificate-authority", "missing.crt", "there is no file /home/me/.kube/missing.crt"],
    ["certificate-authority", ["a"], "is a list where a text belongs; give a single text"],
    ["certificate-authority-data", "SECRET!", "is not base64"],
    ["certificate-authority-data", base64("SECRET"), "holds no PEM certificate"],
    ["certificate-authority-data", "-----BEGIN CERTIFICATE-----", "holds PEM itself"],
    ["insecure-skip-tls-verify", "yes", "is a text where true or false belongs"],
    ["tls-server-name", true, "is a boolean where a text belongs"],
    [
      "proxy-url",
      "ftp://u:SECRET@proxy",
      "is not an address this can use; write http://, https:// or socks5://",
    ],
    ["proxy-url", "proxy.example:3128", "is not an address this can use"],
    ["extensions", "SECRET", "is a text where a list belongs"],
  ] as const) {
    test(`${field}: ${JSON.stringify(value)} ${problem}`, async () => {
      const message = await messageFor(kubeconfig({ cluster: { [field]: value } }));

      expect(message).toContain(`BadConfig: ${KUBECONFIG}: clusters[name=dev].cluster.${field}: ${problem}`);
      expect(message).not.toContain("SECRET");
    });
  }

  test("a CA that would be ignored is refused", async () => {
    const cluster = {
      "insecure-skip-tls-verify": true,
      "certificate-authority-data": base64(mine!.certificate),
    };

    const message = await messageFor(kubeconfig({ cluster }));

    expect(message).toContain("clusters[name=dev].cluster.insecure-skip-tls-verify: is true although");
  });

  test("a damaged certificate in a bundle is counted out", async () => {
    const damaged = mine!.certificate.replace(/\n.{20}/, "\nAAAAAAAAAAAAAAAAAAAA");
    const bundle = `${other!.certificate}\n${damaged}\n`;

    const message = await messageFor(kubeconfig({ cluster: { "certificate-authority": "ca.crt" } }), {
      "/home/me/.kube/ca.crt": bundle,
    });

    expect(message).toContain("cluster.certificate-authority: certificate 2 of 2 is damaged");
  });
});

describe("the user's fields", () => {
  for (const [field, value, problem] of [
    ["token", 1234567, "is a number where a text belongs; put it in quotes"],
    ["token", "SECRET with blanks", "contains blanks"],
    ["tokenFile", "gone", "there is no file /home/me/.kube/gone"],
    ["tokenFile", "empty", "the file /home/me/.kube/empty is empty or holds no token"],
    ["auth-provider", { name: "gcp", config: { "access-token": "SECRET" } }, "is not supported any more"],
    ["as", "a\nb", "contains characters that no HTTP header can carry"],
    ["as-groups", "admins", "is a text where a list belongs"],
    ["as-user-extra", ["a"], "is a list where a mapping belongs"],
    ["exec", "SECRET", "is a text where a mapping belongs"],
    ["client-key-data", "SECRET?", "is not base64"],
    [
      "client-key",
      "-----BEGIN PRIVATE KEY-----\nSECRET",
      "is the path of a file, but holds what looks like its content",
    ],
    ["tokenFile", "eyJTRUNS.SECRET.SECRET", "there is no file /home/me/.kube/[redacted]"],
  ] as const) {
    test(`${field}: ${JSON.stringify(value)} ${problem}`, async () => {
      const message = await messageFor(kubeconfig({ user: { [field]: value } }), {
        "/home/me/.kube/empty": "\n",
      });

      expect(message).toContain(`${KUBECONFIG}: users[name=admin].user.${field}: ${problem}`);
      expect(message).not.toContain("SECRET");
    });
  }

  const pair = (certificate: string, key: string) => ({
    user: { "client-certificate-data": base64(certificate), "client-key-data": base64(key) },
  });

  test("a key of another certificate is noticed before the first handshake", async () => {
    const message = await messageFor(kubeconfig(pair(mine!.certificate, other!.key)));

    expect(message).toContain(
      "users[name=admin].user.client-key-data: does not belong to the client certificate",
    );
  });

  test("certificate and key that were swapped are both named", async () => {
    const message = await messageFor(kubeconfig(pair(mine!.key, mine!.certificate)));

    expect(message).toMatch(
      /client-certificate-data: holds a private key[^]*client-key-data: holds a certificate/,
    );
    expect(message).not.toContain(mine!.key.split("\n")[1]);
  });

  test("a key with a passphrase says how to get rid of it", async () => {
    const key = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----";

    const message = await messageFor(kubeconfig(pair(mine!.certificate, key)));

    expect(message).toContain("client-key-data: is protected by a passphrase; decrypt it first");
  });

  for (const [given, missing] of [
    ["client-certificate-data", "client-key-data"],
    ["client-key-data", "client-certificate-data"],
  ] as const) {
    test(`${given} alone asks for ${missing}`, async () => {
      const pem = given === "client-key-data" ? mine!.key : mine!.certificate;

      const message = await messageFor(kubeconfig({ user: { [given]: base64(pem) } }));

      expect(message).toContain(`users[name=admin].user.${missing}: is missing`);
    });
  }

  test("groups to act as need a user to act as", async () => {
    const message = await messageFor(kubeconfig({ user: { "as-groups": ["system:masters"] } }));

    expect(message).toContain("users[name=admin].user.as: is missing");
  });

  test("a token and a password cannot both be sent", async () => {
    const message = await messageFor(kubeconfig({ user: { token: "t", username: "u", password: "p" } }));

    expect(message).toContain("users[name=admin].user.username: is given together with a token");
  });
});

describe("an exec entry", () => {
  const exec = {
    apiVersion: "client.authentication.k8s.io/v1",
    command: "login",
    interactiveMode: "Never",
  };
  for (const [field, value, problem] of [
    ["apiVersion", null, "is missing; write client.authentication.k8s.io/v1"],
    [
      "apiVersion",
      "client.authentication.k8s.io/v1alpha1",
      "is client.authentication.k8s.io/v1alpha1, which is not",
    ],
    ["command", null, "is missing"],
    ["args", "get-token", "is a text where a list belongs"],
    ["args[1]", ["a", 1], "is a number where a text belongs"],
    ["env[0].name", [{ value: "SECRET" }], "is missing"],
    ["env[0].value", [{ name: "A", value: 1 }], "is a number where a text belongs"],
    ["interactiveMode", null, "is missing; write Never, IfAvailable or Always"],
    ["interactiveMode", "Sometimes", "is Sometimes; it can be Never, IfAvailable or Always"],
    ["interactiveMode", "Always", "is Always, but there is no terminal"],
  ] as const) {
    test(`${field}: ${JSON.stringify(value)} ${problem}`, async () => {
      const name = /^\w+/.exec(field)![0];

      const message = await messageFor(kubeconfig({ user: { exec: { ...exec, [name]: value } } }));

      expect(message).toContain(`BadConfig: ${KUBECONFIG}: users[name=admin].user.exec.${field}: ${problem}`);
      expect(message).not.toContain("SECRET");
    });
  }
});

test("one run reports everything that is wrong with the context in use, and nothing about others", async () => {
  const text = `
clusters: [{name: a, cluster: {proxy-url: nonsense}}, {name: unused, cluster: {server: 1}}]
users: [{name: u, user: {token: 1, client-key-data: "!"}}]
contexts: [{name: x, context: {cluster: a, user: u}}]
current-context: x
`;

  const message = await messageFor(text);

  expect(message.split("\n").map((line) => line.replace(`${KUBECONFIG}: `, ""))).toEqual([
    "BadConfig: 5 problems in the kubeconfig:",
    "  clusters[name=a].cluster.server: is missing; give the API server's address, https://host:port",
    "  clusters[name=a].cluster.proxy-url: is not an address this can use; write http://, https:// or socks5://host:port",
    "  users[name=u].user.client-key-data: is not base64; encode the PEM file with `base64 -w0`",
    "  users[name=u].user.client-certificate-data: is missing, but a client key is given; add it or client-certificate",
    "  users[name=u].user.token: is a number where a text belongs; put it in quotes",
  ]);
});

test("a file with hundreds of problems shows twenty", async () => {
  const message = await messageFor(`users: [${"{}, ".repeat(300)}]`);

  expect(message).toContain("300 problems");
  expect(message.split("\n")).toHaveLength(22);
});

test("whatever stands in a field, the answer is an access or a BadConfig that keeps it to itself", async () => {
  const anything = fc.oneof(
    fc.constant("SECRET"),
    fc.constant(base64("-----BEGIN PRIVATE KEY-----\nSECRET\n-----END PRIVATE KEY-----")),
    fc.constant("-----BEGIN CERTIFICATE-----\nSECRET\n-----END CERTIFICATE-----"),
    fc.jsonValue({ maxDepth: 2 }),
    fc.record({ key: fc.constant("SECRET"), name: fc.constant("SECRET") }),
  );
  const fields = fc.dictionary(
    fc.constantFrom(
      ...[
        "client-certificate",
        "client-certificate-data",
        "client-key",
        "client-key-data",
        "token",
        "tokenFile",
      ],
      ...["username", "password", "as", "as-groups", "as-user-extra", "exec", "auth-provider"],
    ),
    anything,
  );

  await fc.assert(
    fc.asyncProperty(fields, async (user) => {
      const message = await refusal(kubeconfig({ user }));

      // Paths are no secrets, an error about a file has to name it; nor is the name of an auth-provider.
      const rest = message?.replaceAll("/home/me/.kube/SECRET", "").replaceAll("replaces SECRET", "");
      expect(rest ?? "").not.toContain("SECRET");
    }),
    { numRuns: 500, seed: 1 },
  );
});
