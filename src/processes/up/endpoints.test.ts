import { expect, test } from "vitest";
import { pagesIn } from "./endpoints.ts";

const server = "https://127.0.0.1:6443";
const known = {
  server,
  controller: "http://127.0.0.1:1",
  attacher: "http://127.0.0.1:2",
  nodes: { "node-1": "http://127.0.0.1:3", "node-2": "http://127.0.0.1:4" },
};

test("every part of a cluster has its page", () => {
  expect(pagesIn(JSON.stringify(known), server)).toEqual([
    { process: "controller", url: "http://127.0.0.1:1" },
    { process: "attacher", url: "http://127.0.0.1:2" },
    { process: "node", url: "http://127.0.0.1:3" },
    { process: "node", url: "http://127.0.0.1:4" },
  ]);
});

for (const [what, text] of [
  ["of another cluster", JSON.stringify({ ...known, server: "https://127.0.0.1:7443" })],
  ["that is not there", ""],
  ["cut in half", JSON.stringify(known).slice(0, 40)],
  ["with other things in it", JSON.stringify({ server, controller: 7, nodes: ["x", null] })],
  ["with addresses elsewhere", JSON.stringify({ server, controller: "http://192.0.2.1:80", nodes: null })],
] as const) {
  test(`a file ${what} has no pages`, () => {
    expect(pagesIn(text, server)).toEqual([]);
  });
}
