import { hostContract } from "../../test/contract/driver-host.ts";
import { createFakeHost } from "./fake-host.testing.ts";

hostContract("the machine in memory", async () => {
  const host = createFakeHost();
  host.makePath("/root");
  return { host, root: "/root" };
});
