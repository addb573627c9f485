import { createHmac, createPublicKey, generateKeyPairSync, type JsonWebKey } from "node:crypto";
import { describe, expect, test } from "vitest";
import { createAuthenticator } from "./authenticator.ts";
import { testKeys } from "../scenario.testing.ts";
import { givenCluster, type Cluster } from "./scenario.testing.ts";
import { createServiceAccountTokens } from "./service-account-tokens.ts";
import { generateSigningKey, loadTokenKeys } from "./signing-key.ts";
import { parseStaticTokens } from "./static-tokens.ts";
import { ANONYMOUS } from "./user.ts";

async function givenToken(spec: object = {}) {
  const cluster = await givenCluster();
  const account = await cluster.ok("POST", "/api/v1/namespaces/t/serviceaccounts", {
    metadata: { name: "sa" },
  });
  const token = await tokenOf(cluster, spec);
  const who = (bearer = token) => whoIs(cluster, bearer);
  return { cluster, account, token, who };
}

async function tokenOf(cluster: Cluster, spec: object): Promise<string> {
  const answer = await cluster.ok("POST", "/api/v1/namespaces/t/serviceaccounts/sa/token", { spec });
  return String(answer.status["token"]);
}

/** The user's name, or the code of the refusal. */
function whoIs({ authenticator }: Cluster, bearer: string): string {
  try {
    return authenticator.authenticate({ headers: { authorization: `Bearer ${bearer}` } }).name;
  } catch (error) {
    return String((error as { status: { code: number } }).status.code);
  }
}

const SA = "system:serviceaccount:t:sa";

describe("who sends a request", () => {
  test("a certificate is believed before any token, even a wrong one, as in kube-apiserver", async () => {
    const { authenticator } = await givenCluster();

    const user = authenticator.authenticate({
      user: { name: "ann", groups: ["ops"] },
      headers: { authorization: "Bearer nonsense" },
    });

    expect(user).toEqual({ name: "ann", groups: ["ops", "system:authenticated"] });
  });

  test("no credential is nobody; a wrong one, or one of an unknown kind, is 401", async () => {
    const { authenticator } = await givenCluster();
    const who = (authorization: string) => () => authenticator.authenticate({ headers: { authorization } });

    expect(authenticator.authenticate({ headers: {} })).toEqual(ANONYMOUS);
    expect(who("bearer  bobtoken")()).toMatchObject({ name: "bob", uid: "uid-bob" });
    for (const header of [
      "Bearer nope",
      "Bearer",
      "Bearer ",
      "Basic Ym9iOmJvYg==",
      "bobtoken",
      "Bearer bobtoken bobtoken",
    ]) {
      expect(who(header), header).toThrow("Unauthorized");
    }
  });
});

describe("a token file", () => {
  test("has a token, a user, a uid and groups a line; quotes hold commas", () => {
    const tokens = parseStaticTokens('t1,ann,u1,"ops,devs"\r\n\nt2,bob,u2\nt3,"c, d",u3,"say ""hi"""\n');

    expect(tokens.find("t1")).toEqual({ name: "ann", uid: "u1", groups: ["ops", "devs"] });
    expect(tokens.find("t2")).toEqual({ name: "bob", uid: "u2", groups: [] });
    expect(tokens.find("t3")).toEqual({ name: "c, d", uid: "u3", groups: ['say "hi"'] });
    expect(tokens.find("")).toBeUndefined();
    expect(tokens.find("t1,ann")).toBeUndefined();
  });

  test("with a bad line names its number and never what is in it", () => {
    for (const text of ["ok,bob,u\nsecret-one,,u", "ok,bob,u\n,bob,u", 'ok,bob,u\nsecret-one,"bob,u']) {
      expect(() => parseStaticTokens(text)).toThrow(/line 2/);
      expect(() => parseStaticTokens(text)).not.toThrow(/secret-one/);
    }
  });
});

describe("a service account's token", () => {
  test("is its account, with its groups", async () => {
    const { cluster, account, token } = await givenToken();

    expect(cluster.authenticator.authenticate({ headers: { authorization: `Bearer ${token}` } })).toEqual({
      name: SA,
      uid: account.metadata.uid,
      groups: ["system:serviceaccounts", "system:serviceaccounts:t", "system:authenticated"],
    });
  });

  test("is refused from the second it expires, and before its time if clocks were set back far", async () => {
    const { cluster, who } = await givenToken({ expirationSeconds: 600 });

    cluster.clock.jumpWall(-59_000);
    expect(who()).toBe(SA);
    cluster.clock.jumpWall(-2_000);
    expect(who()).toBe("401");
    cluster.clock.jumpWall(61_000 + 599_999);
    expect(who()).toBe(SA);
    cluster.clock.jumpWall(1);
    expect(who()).toBe("401");
  });

  test("dies with its account, and an account of the same name does not revive it", async () => {
    const { cluster, who } = await givenToken();
    const path = "/api/v1/namespaces/t/serviceaccounts";

    await cluster.ok("DELETE", `${path}/sa`);
    expect(who()).toBe("401");

    await cluster.ok("POST", path, { metadata: { name: "sa" } });
    expect(who()).toBe("401");
  });

  test("bound to a pod says which, lives through its grace period, and dies with it", async () => {
    const { cluster } = await givenToken();
    await cluster.ok("POST", "/api/v1/nodes", { metadata: { name: "n1" } });
    const pod = await cluster.ok("POST", "/api/v1/namespaces/t/pods", podOn("n1"));
    const token = await tokenOf(cluster, { boundObjectRef: { kind: "Pod", apiVersion: "v1", name: "p" } });

    const user = cluster.authenticator.authenticate({ headers: { authorization: `Bearer ${token}` } });
    expect(user.extra).toMatchObject({
      "authentication.kubernetes.io/pod-name": ["p"],
      "authentication.kubernetes.io/pod-uid": [pod.metadata.uid],
      "authentication.kubernetes.io/node-name": ["n1"],
    });

    await cluster.ok("DELETE", "/api/v1/namespaces/t/pods/p");
    expect(whoIs(cluster, token)).toBe(SA);
    await cluster.scheduler.runFor(30_000 + 59_000);
    expect(whoIs(cluster, token)).toBe(SA);
    await cluster.scheduler.runFor(1_000);
    expect(whoIs(cluster, token)).toBe("401");
  });

  test("bound to a pod that was forcibly removed is refused at once", async () => {
    const { cluster } = await givenToken();
    await cluster.ok("POST", "/api/v1/namespaces/t/pods", podOn("n1"));
    const token = await tokenOf(cluster, { boundObjectRef: { kind: "Pod", apiVersion: "v1", name: "p" } });

    await cluster.ok("DELETE", "/api/v1/namespaces/t/pods/p?gracePeriodSeconds=0");

    expect(whoIs(cluster, token)).toBe("401");
  });

  test("for another audience does not open this server", async () => {
    const { who } = await givenToken({ audiences: ["vault"] });

    expect(who()).toBe("401");
  });

  test("changed in any part, or signed by anybody else, is refused", async () => {
    const { cluster, token, who } = await givenToken();
    const [header = "", claims = "", signature = ""] = token.split(".");
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const decoded = JSON.parse(Buffer.from(claims, "base64url").toString()) as object;
    const kid = (JSON.parse(Buffer.from(header, "base64url").toString()) as { kid: string }).kid;
    const stranger = loadTokenKeys([await generateSigningKey()]).signToken(decoded);
    const symmetric = `${encode({ alg: "HS256", kid })}.${claims}`;
    const secret = publicPem(cluster.keys);
    const admin = encode({ ...decoded, sub: "system:serviceaccount:kube-system:admin" });

    for (const forged of [
      `${header}.${admin}.${signature}`,
      `${encode({ alg: "none", kid })}.${claims}.`,
      `${encode({ alg: "RS256" })}.${claims}.${signature}`,
      `${symmetric}.${createHmac("sha256", secret).update(symmetric).digest("base64url")}`,
      `${header}.${claims}.${signature.slice(0, -6)}`,
      `${header}.${claims}`,
      `${token}.more`,
      stranger,
      "a.b.c",
      "..",
    ]) {
      expect(who(forged), forged.slice(0, 80)).toBe("401");
    }
    expect(whoIs(cluster, token)).toBe(SA);
  });

  test("of an earlier key is good as long as that key is still loaded", async () => {
    const { cluster, token } = await givenToken();
    const next = await generateSigningKey();
    const before = await testKeys();
    const verify = (keys: ReturnType<typeof loadTokenKeys>) =>
      createAuthenticator({
        serviceAccounts: createServiceAccountTokens({ store: cluster.store, clock: cluster.clock, keys }),
      }).reviewToken(token, cluster.serviceAccounts.audiences).kind;

    expect(verify(before)).toBe("accepted");
    expect(verify(loadTokenKeys([next]))).toBe("foreign");
    expect(verify(loadTokenKeys([next, publicPem(before)]))).toBe("accepted");
  });

  test("keys that are not RSA keys in PEM are refused with what to do", () => {
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });

    expect(() => loadTokenKeys(["nonsense"])).toThrow(/restore it from a backup/);
    expect(() => loadTokenKeys([privateKey.export({ type: "pkcs8", format: "pem" }).toString()])).toThrow(
      /RSA/,
    );
  });
});

function publicPem(keys: ReturnType<typeof loadTokenKeys>): string {
  const [jwk] = (keys.jwks as { keys: JsonWebKey[] }).keys;
  return createPublicKey({ key: jwk as JsonWebKey, format: "jwk" })
    .export({ type: "spki", format: "pem" })
    .toString();
}

function podOn(node: string) {
  return {
    metadata: { name: "p" },
    spec: { nodeName: node, serviceAccountName: "sa", containers: [{ name: "c", image: "i" }] },
  };
}
