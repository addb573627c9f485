import { createPublicKey, verify, type JsonWebKey } from "node:crypto";
import { describe, expect, test } from "vitest";
import { givenServer } from "../scenario.testing.ts";

const CONFIGURATION = "/.well-known/openid-configuration";
const KEYS = "/openid/v1/jwks";

async function givenToken() {
  const server = await givenServer({ guarded: true, handler: { serverAddress: "10.0.0.1:6443" } });
  const request = { spec: { audiences: ["vault"], expirationSeconds: 600 } };
  const issued = await server.ok("POST", "/api/v1/namespaces/t/serviceaccounts/default/token", request);
  const inside = await server.ok("POST", "/api/v1/namespaces/t/serviceaccounts/default/token", { spec: {} });
  const headers = { authorization: `Bearer ${String(inside.status["token"])}` };
  const get = (path: string) => server.send("GET", path, undefined, { user: null, headers });
  return { ...server, token: String(issued.status["token"]), get };
}

describe("OpenID discovery", () => {
  test("a verifier that was told the issuer alone can check a token of a TokenRequest", async () => {
    const { token, get } = await givenToken();

    const configuration = JSON.parse((await get(CONFIGURATION)).text) as Record<string, string>;
    const keysPath = new URL(configuration["jwks_uri"] ?? "").pathname;
    const { keys } = JSON.parse((await get(keysPath)).text) as { keys: (JsonWebKey & { kid: string })[] };

    const [header = "", claims = "", signature = ""] = token.split(".");
    const { kid, alg } = decode(header);
    const jwk = keys.find((key) => key.kid === kid);
    const key = createPublicKey({ key: jwk ?? {}, format: "jwk" });
    const signed = Buffer.from(`${header}.${claims}`);
    expect(configuration["id_token_signing_alg_values_supported"]).toContain(alg);
    expect(verify("RSA-SHA256", signed, key, Buffer.from(signature, "base64url"))).toBe(true);
    expect(verify("RSA-SHA256", Buffer.from(`${header}.e30`), key, Buffer.from(signature, "base64url"))).toBe(
      false,
    );
    expect(decode(claims)).toMatchObject({ iss: configuration["issuer"], aud: ["vault"] });
  });

  test("says where the keys are, in the types verifiers expect, and may be cached for an hour", async () => {
    const { get } = await givenToken();

    const configuration = await get(CONFIGURATION);
    const keys = await get(KEYS);

    expect(JSON.parse(configuration.text)).toMatchObject({ jwks_uri: `https://10.0.0.1:6443${KEYS}` });
    expect([configuration.headers["content-type"], keys.headers["content-type"]]).toEqual([
      "application/json",
      "application/jwk-set+json",
    ]);
    expect(configuration.headers["cache-control"]).toBe("public, max-age=3600");
    expect(keys.text).not.toMatch(/"(d|p|q|dp|dq|qi)":/);
  });

  for (const [who, options, status] of [
    ["the administrator", {}, 200],
    ["nobody", { user: null }, 403],
    ["a user with no role", { user: null, headers: { authorization: "Bearer bobtoken" } }, 403],
    ["a wrong token", { user: null, headers: { authorization: "Bearer x" } }, 401],
  ] as const) {
    test(`${who} gets ${status}, as the role system:service-account-issuer-discovery has it`, async () => {
      const { send } = await givenServer({ guarded: true });

      for (const path of [CONFIGURATION, KEYS]) {
        expect((await send("GET", path, undefined, options)).status).toBe(status);
      }
    });
  }

  test("only reads; paths beside them are none; where nobody issues tokens there is nothing to discover", async () => {
    const { send } = await givenServer({ guarded: true });
    const trusting = await givenServer();

    expect((await send("POST", KEYS, {})).status).toBe(405);
    for (const path of ["/openid", "/openid/v1", "/.well-known", "/.well-known/other", `${KEYS}/x`]) {
      expect((await send("GET", path)).status).toBe(404);
    }
    expect((await trusting.send("GET", KEYS)).status).toBe(404);
    expect((await send("GET", "/")).text).toContain(CONFIGURATION);
  });
});

function decode(part: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(part, "base64url").toString("utf8")) as Record<string, unknown>;
}
