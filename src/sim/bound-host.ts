import type { Host } from "../node/host.ts";
import type { Life } from "./life.ts";

/** A machine as one process sees it: with its death its calls end. */
export function bindHost(life: Life, { files, mounts, devices, programs, processes }: Host): Host {
  return {
    files: life.bind(files),
    mounts: life.bind(mounts),
    devices: life.bind(devices),
    programs: life.bind(programs),
    processes: life.bind(processes),
  };
}
