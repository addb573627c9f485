// Mutants of rules against what never happens in the simulated cluster: a record that somebody lost, a kubelet on the machine, a
// network of disks, a driver that repeats secrets. Each is judged by the test file that it names.

export const outsideMutants = [
  {
    id: "lost-record-deletes",
    of: "data safety 2",
    promise: "data without a record is kept, whatever became of the record",
    test: "src/driver/damaged.test.ts",
    changes: [
      {
        file: "src/driver/recovery.ts",
        from: "table.get(name) !== undefined || table.damaged().includes(name)) continue;\n    await isolated(context, name, async () => {\n",
        to: "table.get(name) !== undefined) continue;\n    await isolated(context, name, async () => {\n      await files.removeFile(`${directory}/${name}/image.raw`);\n",
      },
    ],
  },
  {
    id: "released-by-own-records",
    of: "data safety 6",
    promise:
      "OK of an unpublish means that nothing of the pool is at the path, by whatever node id it came there",
    test: "src/driver/released.test.ts",
    changes: [
      {
        file: "src/driver/released.ts",
        from: "  if (other !== undefined) {",
        to: "  if (other?.nodeId === context.settings.nodeId) {",
      },
      {
        file: "src/driver/released.ts",
        from: "  if (left === undefined) return;",
        to: "  if (left?.path !== id) return;",
      },
    ],
  },
  {
    id: "path-by-its-spelling",
    of: "data safety 6",
    promise:
      "a path with a slash at its end is the same path, and what is published there can be unpublished",
    test: "src/driver/paths.test.ts",
    changes: [
      { file: "src/driver/paths.ts", from: "const path = plain(text);", to: "const path = text;" },
      {
        file: "src/driver/paths.ts",
        from: "const place = await host.files.resolve(path);\n  if (place === undefined) return undefined;",
        to: "const place = path;",
      },
    ],
  },
  {
    id: "emergency-is-healthy",
    of: "data safety 6",
    promise: "a filesystem that the kernel has stopped after an error is not called healthy",
    test: "src/driver/health-calls.test.ts",
    changes: [
      {
        file: "src/driver/health.ts",
        from: "  if (mount.failure !== undefined) {",
        to: "  if (mount.failure === record.id) {",
      },
    ],
  },
  {
    id: "made-anew-forgotten",
    of: "data safety 11",
    promise: "a VolumeAttachment that is made anew while the detach of the old one ends is seen all the same",
    // In the simulated cluster the attacher's next write to the new one brings it back to mind.
    test: "src/attach-detach/scenarios-contradiction.sim.test.ts",
    changes: [
      {
        file: "src/attach-detach/attachments.ts",
        from: "  if (object === undefined) return;\n  if (attachmentVerdict",
        to: "  if (object === undefined || context.clock.now() >= 0) return;\n  if (attachmentVerdict",
      },
    ],
  },
  {
    id: "secret-of-earlier-call",
    of: "data safety 13",
    promise: "what a driver was told once is in no later error and in no line of the log",
    test: "src/csi/known-secrets.test.ts",
    changes: [
      {
        file: "src/csi/grpc-channel.ts",
        from: "    known.learn(secretValues(method.input, request));\n",
        to: "",
      },
    ],
  },
  {
    id: "secret-encoded",
    of: "data safety 13",
    promise: "a secret is taken out of a text in whatever encoding it stands there",
    test: "src/base/known-secrets.test.ts",
    changes: [
      {
        file: "src/base/known-secrets.ts",
        from: "      ...base64Of(part),\n      ...hexOf(part),\n",
        to: "",
      },
    ],
  },
  {
    id: "agent-beside-kubelet",
    of: "data safety 14",
    promise: "no agent starts where a kubelet uses its root directory",
    test: "src/processes/kubelet-check.test.ts",
    changes: [
      {
        file: "src/processes/kubelet-check.ts",
        from: "const found = await findKubelets(check);",
        to: "const found = (await findKubelets(check)).filter(({ pid }) => pid === 0);",
      },
    ],
  },
  {
    id: "device-path-believed",
    of: "data safety 17",
    promise:
      "the path of a disk is that of one boot: the disk is found anew, and one that is another is not used",
    test: "src/node/plugins/renamed-disks.test.ts",
    changes: [
      {
        file: "src/node/plugins/disk-volume.ts",
        from: "async function mount({ spec, deviceMountPath, selinuxLabel, signal }: MountDeviceRequest)",
        to: "async function mount({ spec, deviceMountPath, devicePath: told, selinuxLabel, signal }: MountDeviceRequest)",
      },
      {
        file: "src/node/plugins/disk-volume.ts",
        from: "() => kind.find(spec, signal));\n    await mountDisk(",
        to: "async () => told || kind.find(spec, signal));\n    await mountDisk(",
      },
    ],
  },
  {
    id: "root-behind-link",
    of: "data safety 19",
    promise:
      "a root directory behind a link is the same directory: its mounts are known by the path that was configured",
    test: "src/node/scenarios/root-spelling.sim.test.ts",
    changes: [
      { file: "src/node/root-spelling.ts", from: "  if (real === root) return host;", to: "  return host;" },
    ],
  },
  {
    id: "conditions-overwritten",
    of: "data safety 19",
    promise: "what others wrote into the status of a claim meanwhile stays there",
    test: "src/node/scenarios/live-reads.sim.test.ts",
    changes: [
      {
        file: "src/node/steps/expand.ts",
        from: "const value = { metadata: { resourceVersion }, status: statusOf(current) };",
        to: "const value = { status: statusOf(current), resourceVersion };",
      },
    ],
  },
  {
    id: "child-a-removal",
    of: "data safety 20",
    promise: "few processes run at a time, however many volumes are taken down",
    test: "src/node/child-slots.test.ts",
    changes: [
      {
        file: "src/node/child-slots.ts",
        from: "return !startedThisTurn && running.size < PROGRAMS_MAX && (!slow || slowOnes() < SLOW_MAX);",
        to: "return slow ? slowOnes() < SLOW_MAX : true;",
      },
    ],
  },
];
