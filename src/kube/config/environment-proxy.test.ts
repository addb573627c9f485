import { expect, test } from "vitest";
import { environmentProxy } from "./environment-proxy.ts";

const PROXY = "http://proxy.example:3128";
const API = "https://api.eu.example:6443";

for (const [claim, env, server, expected] of [
  ["no variable, no proxy", {}, API, undefined],
  ["an https server asks HTTPS_PROXY", { HTTPS_PROXY: PROXY }, API, PROXY],
  ["in small letters too", { https_proxy: PROXY }, API, PROXY],
  ["but not HTTP_PROXY", { HTTP_PROXY: PROXY }, API, undefined],
  ["an http server asks HTTP_PROXY", { HTTP_PROXY: PROXY }, "http://api.example", PROXY],
  ["a proxy without a scheme is http", { HTTPS_PROXY: "proxy.example:3128" }, API, PROXY],
  ["loopback is never proxied, by name", { HTTPS_PROXY: PROXY }, "https://localhost:6443", undefined],
  ["nor by address", { HTTPS_PROXY: PROXY }, "https://127.0.0.1:6443", undefined],
  ["nor in IPv6", { HTTPS_PROXY: PROXY }, "https://[::1]:6443", undefined],
] as const) {
  test(claim, () => {
    expect(environmentProxy(env, server)).toBe(expected);
  });
}

for (const [noProxy, server, exempt] of [
  ["*", API, true],
  ["", API, false],
  ["api.eu.example", API, true],
  ["EU.example", API, true],
  [".eu.example", API, true],
  [".api.eu.example", API, false], // a leading dot means subdomains only
  ["u.example", API, false],
  ["*.eu.example", API, true],
  ["other, eu.example", API, true],
  ["eu.example:6443", API, true],
  ["eu.example:443", API, false],
  ["10.0.0.1", "https://10.0.0.1:6443", true],
  ["10.0.0.1:443", "https://10.0.0.1", true],
  ["0.0.1", "https://10.0.0.1", false], // no suffixes of addresses
  ["10.0.0.0/8", "https://10.200.0.1", true],
  ["10.0.0.0/8", "https://11.0.0.1", false],
  ["10.0.0.0/33", "https://10.0.0.1", false],
  ["fd00::/8", "https://[fd00::1]:6443", true],
  ["fd00::1", "https://[fd00::1]:6443", true],
  ["[fd00::1]:443", "https://[fd00::1]:6443", false],
  ["nonsense/8", API, false],
] as const) {
  test(`NO_PROXY=${noProxy} ${exempt ? "exempts" : "does not exempt"} ${server}`, () => {
    const env = { HTTPS_PROXY: PROXY, NO_PROXY: noProxy };

    expect(environmentProxy(env, server)).toBe(exempt ? undefined : PROXY);
  });
}
