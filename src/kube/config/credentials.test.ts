import { beforeAll, describe, expect, test } from "vitest";
import { createSeededRandom } from "../../base/seeded-random.ts";
import { SimScheduler } from "../../sim/scheduler.ts";
import type { ClientCertificate } from "../transport/access.ts";
import { base64, given, KUBECONFIG, kubeconfig, makeCertificate } from "./scenario.testing.ts";

let [old, renewed]: ClientCertificate[] = [];
beforeAll(async () => {
  [old, renewed] = await Promise.all([makeCertificate("old"), makeCertificate("renewed")]);
});

/** A user in the home directory's kubeconfig, files beside it, and a clock to move. */
async function userWith(user: Record<string, unknown>, files: Record<string, string> = {}) {
  const beside = Object.entries(files).map(([name, text]) => [`/home/me/.kube/${name}`, text]);
  const scheduler = new SimScheduler(createSeededRandom("credentials"));
  const scene = given({
    files: { ...Object.fromEntries(beside), [KUBECONFIG]: kubeconfig({ user }) },
    clock: scheduler.createClock(),
  });
  const access = await scene.load();
  return {
    ...scene,
    scheduler,
    access,
    credentials: access.credentials,
    token: async () => (await access.credentials.current()).authorization,
    write: (name: string, text: string) => void scene.world.files.set(`/home/me/.kube/${name}`, text),
    remove: (name: string) => void scene.world.files.delete(`/home/me/.kube/${name}`),
  };
}

describe("what is written in the kubeconfig", () => {
  test("a token is sent without the line break of its block text, and a rejection changes nothing", async () => {
    const { credentials } = await userWith({ token: "abc\n" });

    const credential = await credentials.current();

    expect(credential).toEqual({ authorization: "Bearer abc" });
    expect(credentials.rejected(credential)).toBe(false);
    expect(await credentials.current()).toBe(credential);
  });

  test("username and password become Basic", async () => {
    const { token } = await userWith({ username: "me", password: "pä:ss" });

    expect(await token()).toBe(`Basic ${base64("me:pä:ss")}`);
  });

  test("a certificate and a token go together", async () => {
    const data = { "client-certificate-data": base64(old!.certificate), "client-key-data": base64(old!.key) };
    const { credentials } = await userWith({ ...data, token: "t" });

    const credential = await credentials.current();

    expect(credential).toEqual({ authorization: "Bearer t", clientCertificate: old });
    expect(await credentials.current()).toBe(credential);
  });

  test("data wins over a file, which need not even exist", async () => {
    const { credentials } = await userWith({
      "client-certificate": "gone.crt",
      "client-certificate-data": base64(old!.certificate),
      "client-key": "gone.key",
      "client-key-data": base64(old!.key),
    });

    expect(await credentials.current()).toEqual({ clientCertificate: old });
  });

  test("an expired certificate is warned of, not refused: the wrong clock may be ours", async () => {
    const { certificate, key } = await makeCertificate("expired", {
      notAfter: new Date(Date.UTC(2025, 0, 1)),
    });

    const { lines } = await userWith({
      "client-certificate-data": base64(certificate),
      "client-key-data": base64(key),
    });

    expect(lines).toMatchObject([
      { level: "warn", fields: { expired: "2025-01-01T00:00:00.000Z", file: KUBECONFIG } },
    ]);
  });

  test("nothing of it is sent over plain http", async () => {
    const files = {
      [KUBECONFIG]: kubeconfig({ cluster: { server: "http://api.example" }, user: { token: "t" } }),
    };
    const scene = given({ files });

    const access = await scene.load();

    expect(await access.credentials.current()).toEqual({});
    expect(scene.warnings()).toEqual(["credentials are not sent over plain http"]);
  });
});

describe("acting as somebody else", () => {
  test("user, uid, groups and extra become headers", async () => {
    const { access } = await userWith({
      token: "t",
      as: "jane",
      "as-uid": "u-1",
      "as-groups": ["dev", "ops"],
      "as-user-extra": { Scopes: ["view"], scopes: ["edit"], "example.com/team %": ["a"] },
    });

    expect(access.impersonation).toEqual({
      "Impersonate-User": "jane",
      "Impersonate-Uid": "u-1",
      "Impersonate-Group": ["dev", "ops"],
      "Impersonate-Extra-scopes": ["view", "edit"],
      "Impersonate-Extra-example.com%2Fteam%20%25": ["a"],
    });
  });
});

describe("a token file", () => {
  test("is read again after a minute, not before", async () => {
    const { token, write, scheduler } = await userWith({ tokenFile: "token" }, { token: "one\n" });
    write("token", "two");

    await scheduler.runFor(59_999);
    expect(await token()).toBe("Bearer one");

    await scheduler.runFor(1);
    expect(await token()).toBe("Bearer two");
  });

  test("is read again at once when the server rejects what it held", async () => {
    const { credentials, token, write } = await userWith({ tokenFile: "token" }, { token: "one" });
    const first = await credentials.current();
    write("token", "two");

    expect(credentials.rejected(first)).toBe(true);
    expect(await token()).toBe("Bearer two");

    // A slow answer to a request that still carried the old token: the new one is worth a try, the file no read.
    expect(credentials.rejected(first)).toBe(true);
    expect(await token()).toBe("Bearer two");
  });

  test("that holds a token nobody accepts is read once a second, however many requests fail", async () => {
    const { credentials, scheduler } = await userWith({ tokenFile: "token" }, { token: "bad" });
    const bad = await credentials.current();

    const retries = [];
    for (let request = 0; request < 100; request++) {
      retries.push(credentials.rejected(bad));
      expect(await credentials.current()).toBe(bad);
    }
    await scheduler.runFor(1_000);

    expect(retries.filter((retry) => retry)).toHaveLength(1);
    expect(credentials.rejected(bad)).toBe(true);
  });

  test("that disappears or is emptied leaves the last good token, and one line in the log", async () => {
    const { token, remove, write, scheduler, warnings } = await userWith(
      { tokenFile: "token" },
      { token: "one" },
    );

    remove("token");
    await scheduler.runFor(60_000);
    expect(await token()).toBe("Bearer one");
    write("token", "");
    await scheduler.runFor(10_000);
    expect(await token()).toBe("Bearer one");
    write("token", "two");
    await scheduler.runFor(10_000);

    expect(await token()).toBe("Bearer two");
    expect(warnings()).toEqual(["credential files are unusable; the last good credential stays"]);
  });

  test("wins over a token, which serves until the file appears", async () => {
    const { token, write, scheduler } = await userWith({ token: "bridge", tokenFile: "token" });
    expect(await token()).toBe("Bearer bridge");

    write("token", "file");
    await scheduler.runFor(60_000);

    expect(await token()).toBe("Bearer file");
  });

  test("that hangs holds up no request longer than its own deadline", async () => {
    const { credentials, scheduler, world } = await userWith({ tokenFile: "token" }, { token: "one" });
    world.readFile = () => new Promise(() => undefined);
    await scheduler.runFor(60_000);
    const deadline = new AbortController();

    const asking = credentials.current(deadline.signal);
    deadline.abort(new Error("deadline"));

    await expect(asking).rejects.toThrow("deadline");
  });
});

describe("certificate files", () => {
  const fields = { "client-certificate": "tls.crt", "client-key": "tls.key" };

  test("that are renewed are used within a minute", async () => {
    const files = { "tls.crt": old!.certificate, "tls.key": old!.key };
    const { credentials, write, scheduler } = await userWith(fields, files);
    const before = await credentials.current();
    expect(before.clientCertificate).toEqual(old);

    write("tls.crt", renewed!.certificate);
    write("tls.key", renewed!.key);
    await scheduler.runFor(60_000);

    expect((await credentials.current()).clientCertificate).toEqual(renewed);
  });

  test("seen between the writing of one and the other are not mixed, and right 10 s later", async () => {
    const files = { "tls.crt": old!.certificate, "tls.key": old!.key };
    const { credentials, write, scheduler } = await userWith(fields, files);

    write("tls.crt", renewed!.certificate);
    await scheduler.runFor(60_000);
    expect((await credentials.current()).clientCertificate).toEqual(old);

    write("tls.key", renewed!.key);
    await scheduler.runFor(10_000);
    expect((await credentials.current()).clientCertificate).toEqual(renewed);
  });

  test("that do not change answer the same object, so that connections can be kept", async () => {
    const files = { "tls.crt": old!.certificate, "tls.key": old!.key };
    const { credentials, scheduler } = await userWith({ ...fields, token: "t" }, files);
    const before = await credentials.current();

    await scheduler.runFor(120_000);

    expect(await credentials.current()).toBe(before);
  });

  test("a rejection reaches both halves of a credential", async () => {
    const files = { "tls.crt": old!.certificate, "tls.key": old!.key, token: "one" };
    const { credentials, write } = await userWith({ ...fields, tokenFile: "token" }, files);
    const before = await credentials.current();
    write("tls.crt", renewed!.certificate);
    write("tls.key", renewed!.key);
    write("token", "two");

    expect(credentials.rejected(before)).toBe(true);

    expect(await credentials.current()).toEqual({ authorization: "Bearer two", clientCertificate: renewed });
  });
});
