import { expect, test } from "vitest";
import { redact, REDACTED } from "./redact.ts";

for (const name of [
  "token",
  "bearerToken",
  "id-token",
  "ID_TOKEN",
  "password",
  "Authorization",
  "client-key-data",
  "clientKeyData",
  "secrets",
  "kubeconfig",
]) {
  test(`a field called ${name} is not shown, at any depth`, () => {
    expect(redact({ outer: [{ [name]: "s3cr3t-value" }] })).toEqual({ outer: [{ [name]: REDACTED }] });
  });
}

for (const name of ["secretName", "tokenExpirationSeconds", "keys", "volume", "claimRef"]) {
  test(`a field called ${name} is shown: it says which, not what`, () => {
    expect(redact({ [name]: "visible" })).toEqual({ [name]: "visible" });
  });
}

test("a Secret keeps its name and loses its data", () => {
  const secret = {
    kind: "Secret",
    metadata: { name: "db" },
    data: { user: "YWRtaW4=" },
    stringData: { user: "admin" },
  };

  expect(redact(secret)).toEqual({
    kind: "Secret",
    metadata: { name: "db" },
    data: REDACTED,
    stringData: REDACTED,
  });
});

for (const [text, expected] of [
  ["sent Authorization: Bearer abcdef123456", `sent Authorization: Bearer ${REDACTED}`],
  ["dial https://user:hunter22@proxy:3128 failed", `dial https://user:${REDACTED}@proxy:3128 failed`],
  ["got eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.c2ln back", `got ${REDACTED} back`],
  ["-----BEGIN EC PRIVATE KEY-----\nabc\n-----END EC PRIVATE KEY-----", REDACTED],
  ["nothing to hide at https://10.0.0.1:6443/api", "nothing to hide at https://10.0.0.1:6443/api"],
] as const) {
  test(`text is scrubbed: ${text.slice(0, 30)}`, () => {
    expect(redact(text)).toBe(expected);
  });
}

test("an error shows its chain of causes, scrubbed", () => {
  const error = new Error("attach failed", { cause: new Error("Bearer abcdef123456 was refused") });

  expect(redact(error)).toEqual({
    name: "Error",
    message: "attach failed",
    cause: { name: "Error", message: `Bearer ${REDACTED} was refused` },
  });
});

test("a cycle, a long list and a long text stay one line of bounded size", () => {
  const cycle: Record<string, unknown> = { list: Array.from({ length: 1_000 }, () => "x".repeat(100_000)) };
  cycle["self"] = cycle;

  expect(JSON.stringify(redact(cycle)).length).toBeLessThan(5_000_000);
});
