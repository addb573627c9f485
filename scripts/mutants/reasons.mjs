// Mutants of what is shown: a reason that stays, a reason about the wrong object.

export const reasonMutants = [
  {
    id: "reason-outlives-list",
    promise: "a volume is not shown as waiting for its node's list once the list is there",
    profile: "nodes",
    changes: [
      {
        file: "src/attach-detach/context.ts",
        from: "!busy && !timing && !waiting;",
        to: "!busy && !timing;",
      },
    ],
  },
  {
    id: "reason-names-itself",
    promise: "a volume that another node has is shown as waiting for that node",
    changes: [
      {
        file: "src/attach-detach/plan.ts",
        from: '{ kind: "Node", name: first?.node.name ?? traced[0]?.node ?? "" },',
        to: '{ kind: "Node", name: placement.node.name },',
      },
    ],
  },
];
