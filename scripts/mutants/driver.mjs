// Mutants of the loop driver.

const filesystem = "src/driver/filesystem.ts";

export const driverMutants = [
  {
    id: "formatted-again",
    of: "data safety 1",
    promise: "what was formatted once is never formatted again",
    profile: "loop",
    changes: [
      {
        file: filesystem,
        from: 'if (known?.phase === "formatted") {',
        to: 'if (known?.phase === "formatted" && isMounted) {',
      },
      {
        file: filesystem,
        from: 'if (content.kind === "filesystem" && (known === undefined || !content.neverMounted))',
        to: 'if (content.kind === "filesystem" && known === undefined)',
      },
      { file: filesystem, from: "if (known.image === image)", to: "if (known !== undefined)" },
    ],
  },
  {
    id: "device-by-number",
    of: "data safety 3",
    promise: "a device is the file behind it, not its number",
    profile: "loop",
    changes: [
      {
        file: "src/driver/devices.ts",
        from: "return deviceWith(await host.loops.list(), file?.identity ?? goneIdentity(image));",
        to: "const all = await host.loops.list(); return deviceWith(all, file?.identity ?? goneIdentity(image)) ?? all[0];",
      },
    ],
  },
  {
    id: "reserve-unused",
    of: "data safety 4",
    promise: "on a pool without a free block everything that lets go of a volume works",
    profile: "full",
    changes: [
      {
        file: "src/driver/records.ts",
        from: 'const isFull = error instanceof HostError && error.code === "NoSpace";',
        to: 'const isFull = error instanceof HostError && error.code === "NoTool";',
      },
    ],
  },
  {
    id: "raw-copied-while-written",
    of: "data safety 5",
    promise: "a copy of a raw volume is of one moment, or there is none",
    profile: "raw",
    changes: [
      {
        file: "src/driver/cut.ts",
        from: "if (live.includes(volume)) await cloneLive(context, volume, to);",
        to: 'if (to === "") await cloneLive(context, volume, to);',
      },
    ],
  },
];
