// A driver to be killed: answers Probe, hangs in ControllerPublishVolume, says when it listens and when it is called.
import process from "node:process";
import { createSystemClock } from "../../dist/src/base/system-clock.js";
import { silentLogger } from "../../dist/src/base/log.js";
import { Controller, Identity } from "../../dist/src/csi/gen/csi_pb.js";
import { serve } from "../../dist/src/csi/methods.js";
import { createCsiServer } from "../../dist/src/csi/server.js";

// The widest mask there is: only what the server does itself keeps others out.
process.umask(0);
const say = (line) => process.stdout.write(`${line}\n`);
const server = createCsiServer(
  { clock: createSystemClock(), log: silentLogger },
  {
    socketPath: process.argv[2],
    served: [
      ...serve(Identity, { probe: async () => ({ ready: true }) }),
      ...serve(Controller, {
        controllerPublishVolume: () => {
          say("called");
          return new Promise(() => undefined);
        },
      }),
    ],
  },
);
process.once("SIGTERM", () => void server.stop({ graceMs: 100 }).then(() => process.exit(0)));
await server.start();
say(`listens umask=${process.umask().toString(8)}`);
