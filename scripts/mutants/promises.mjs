// Which mutant takes out what: the mends of the data-safety issue, and the promises at the head of the two plan files.

/** In the order. `tests` show it, too. */
export const mends = [
  {
    says: "a device that cannot be read is not taken for blank; what was formatted is not formatted again",
    mutants: ["formatted-again"],
    tests: ["src/driver/filesystem.test.ts", "src/driver/io-faults.sim.test.ts"],
  },
  { says: "data without a record is kept", mutants: ["lost-record-deletes"] },
  {
    says: "a device is the file behind it",
    mutants: ["device-by-number"],
    tests: ["src/driver/device-identity.sim.test.ts"],
  },
  {
    says: "on a full pool everything that lets go works",
    mutants: ["reserve-unused"],
    tests: ["src/driver/full-pool.test.ts"],
  },
  {
    says: "a copy of a raw volume is of one moment",
    mutants: ["raw-copied-while-written"],
    tests: ["src/driver/raw-copies.sim.test.ts"],
  },
  {
    says: "OK of an unpublish means that nothing is there, under whatever node id and path; a filesystem that failed is not healthy",
    mutants: ["released-by-own-records", "path-by-its-spelling", "emergency-is-healthy"],
  },
  {
    says: "VolumeAttachments under foreign names count, and are nobody else's to delete",
    mutants: ["foreign-holder-ignored", "foreign-detached-under", "adopted-by-name", "twin-unpublished"],
  },
  { says: "a renamed PersistentVolume is the same disk", mutants: ["renamed-holder-ignored"] },
  {
    says: "a detach timer counts only what nobody interrupted",
    mutants: ["stale-timer-counts", "timer-not-restarted"],
  },
  {
    says: "a claim replaced under a pod takes nothing from it",
    mutants: ["claimant-ignored", "not-understood-detached"],
  },
  {
    says: "a VolumeAttachment made anew while its detach ends is not forgotten",
    mutants: ["made-anew-forgotten"],
  },
  { says: "a detach goes by the record", mutants: ["detached-by-present-volume"] },
  {
    says: "no secret in any text",
    mutants: ["secret-of-earlier-call", "secret-encoded"],
  },
  { says: "no agent beside a kubelet", mutants: ["agent-beside-kubelet"] },
  { says: "a volume is let go on the kernel's word only", mutants: ["processes-ignored"] },
  {
    says: "a running pod keeps its volume whatever is replaced",
    mutants: ["replaced-volume-taken", "unfollowed-pod-unmounted"],
  },
  { says: "no journaled device path is used", mutants: ["device-path-believed"] },
  {
    says: "an unanswered call may still be under way",
    mutants: ["late-call-ignored", "unanswered-stage-forgotten"],
  },
  {
    says: "the attachment is read live before a stage; a root behind a link is the same root; conditions of others stay",
    mutants: ["staged-unlisted", "in-use-not-confirmed", "root-behind-link", "conditions-overwritten"],
  },
  { says: "few processes at a mass deletion", mutants: ["child-a-removal"] },
];

export const planPromises = [
  {
    file: "src/attach-detach/plan.ts",
    promises: [
      {
        says: "attached to none while another holds it, surely or perhaps",
        mutants: ["multi-attach-unchecked", "uncertain-holder-ignored", "late-create-forgotten"],
      },
      {
        says: "off `volumesAttached`, confirmed, before its detach",
        mutants: ["detach-while-listed", "late-list-accepted"],
      },
      {
        says: "what somebody else attached counts, and is not detached from under them",
        mutants: ["foreign-holder-ignored", "foreign-detached-under"],
      },
      {
        says: "in use is left, unless the time is over or the node is out of service",
        mutants: ["in-use-ignored", "force-on-healthy-node", "force-too-soon", "force-by-cache"],
      },
      { says: "what cannot be understood is not detached", mutants: ["not-understood-detached"] },
    ],
  },
  {
    file: "src/node/plan.ts",
    promises: [
      {
        says: "not touched before in use is confirmed and it is listed as attached",
        mutants: ["in-use-not-confirmed", "in-use-after-mount", "staged-unlisted"],
      },
      {
        says: "once a node, then once a pod; it leaves one pod before the next has it",
        mutants: ["published-unstaged", "second-pod-beside-first"],
      },
      {
        says: "nothing is taken down before all pods are known, nor from one that cannot be followed",
        mutants: ["unmounted-before-pods-known", "unfollowed-pod-unmounted"],
      },
      {
        says: "nothing is let go before the kernel said that no process has it",
        mutants: ["processes-ignored"],
      },
      {
        says: "what may be there is taken down like what is there",
        mutants: ["unanswered-stage-forgotten"],
      },
    ],
  },
];

/** Lines of the page. */
export function renderPromises() {
  const cell = (names = []) => names.map((name) => `\`${name}\``).join(", ");
  return [
    "## What they take out",
    "",
    "Each mend of the data-safety issue, by its number there, is reversed by a mutant.",
    "",
    "| | mend | reversed by | also shown by |",
    "|---|---|---|---|",
    ...mends.map(
      ({ says, mutants, tests }, at) => `| ${at + 1} | ${says} | ${cell(mutants)} | ${cell(tests)} |`,
    ),
    "",
    "Each promise at the head of the two plan files:",
    "",
    "| file | promise | taken out by |",
    "|---|---|---|",
    ...planPromises.flatMap(({ file, promises }) =>
      promises.map(({ says, mutants }) => `| \`${file}\` | ${says} | ${cell(mutants)} |`),
    ),
    "",
  ];
}
