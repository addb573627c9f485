import type { Words } from "./words.ts";

/** A claim that has no volume, or one that the pod may not use. */
export const CLAIM = {
  "claim-missing": {
    link: "claim",
    state: "unbound",
    waiting: "claim-missing",
    says: "claim {claim} does not exist",
    next: "the pod goes on as soon as the claim is there and bound; nobody else creates it",
    help: { command: "kubectl --namespace {ns} apply --filename CLAIM.yaml" },
  },
  "claim-not-owned": {
    link: "claim",
    state: "unbound",
    waiting: "claim-not-owned",
    says: "claim {claim} stands in the way of the pod's ephemeral volume: it was not made for this pod",
    next: "nothing, until that claim is gone or the pod has another name",
    help: {
      none: "deleting the claim may delete somebody's data; whoever owns it has to decide",
      look: "kubectl --namespace {ns} get pvc {claimName} --output yaml",
    },
  },
  "claim-deleting": {
    link: "claim",
    state: "unbound",
    says: "claim {claim} is being deleted, and no new pod may use it",
    next: "it goes when the last pod that uses it has ended ({users}); then a claim of that name can be made again",
    help: {
      none: "a deletion cannot be taken back, and removing the finalizer takes the volume from under its pods",
      look: "kubectl --namespace {ns} describe pvc {claimName}",
    },
  },
  "claim-lost": {
    link: "claim",
    state: "unbound",
    says: "claim {claim} is Lost: its PersistentVolume {pv} was deleted",
    next: "nothing: a lost claim is never bound again",
    help: {
      none: "only a PersistentVolume {pv} with the same disk brings the data back; a new claim starts empty",
      look: "kubectl --namespace {ns} get pvc {claimName} --output yaml",
    },
  },
  "claim-no-class": {
    link: "claim",
    state: "unbound",
    waiting: "claim-unbound",
    says: "claim {claim} names no StorageClass and the cluster has no default one, so nobody makes a volume for it",
    next: "it is bound when a PersistentVolume without a class fits it, or once a class is the default",
    help: {
      command: "kubectl annotate storageclass CLASS storageclass.kubernetes.io/is-default-class=true",
      note: "every claim without a class then gets a volume of it",
    },
  },
  "claim-static-unmatched": {
    link: "claim",
    state: "unbound",
    waiting: "claim-unbound",
    says: "claim {claim} takes only an existing PersistentVolume (its class is empty), and none that is free fits it",
    next: "it is bound within 15 s after a PersistentVolume that fits is made",
    help: { command: "kubectl apply --filename VOLUME.yaml" },
  },
  "class-missing": {
    link: "claim",
    state: "unbound",
    waiting: "claim-unbound",
    says: "StorageClass {class}, which claim {claim} asks for, does not exist",
    next: "the claim is taken up as soon as the class exists; its class cannot be changed",
    help: {
      command: "kubectl apply --filename CLASS.yaml",
      note: "or make the claim anew with a class that exists",
    },
  },
  "claim-waits-for-pod": {
    link: "claim",
    state: "unbound",
    waiting: "claim-unbound",
    says: "claim {claim} waits for its first pod: StorageClass {class} binds WaitForFirstConsumer",
    next: "a volume is made once a pod that uses the claim is given a node",
    help: { command: "kubectl --namespace {ns} apply --filename POD.yaml", note: "nothing is wrong yet" },
  },
  "claim-bypasses-scheduler": {
    link: "claim",
    state: "unbound",
    waiting: "claim-unbound",
    says: "pod {pod} sets nodeName itself, so no scheduler chose a node for claim {claim}, and StorageClass {class} makes no volume before that (WaitForFirstConsumer)",
    next: "nothing: the claim waits for a scheduler that never sees the pod",
    help: {
      command: "kubectl --namespace {ns} annotate pvc {claimName} volume.kubernetes.io/selected-node={node}",
      note: "this is what the scheduler would have written; better, use a nodeSelector in place of nodeName",
    },
  },
  "provision-failed": {
    link: "claim",
    state: "unbound",
    waiting: "claim-unbound",
    says: "provisioner {provisioner} cannot make a volume for claim {claim}: {message}",
    next: "the provisioner tries again with growing pauses, as long as the claim exists",
    help: {
      none: "what the message says has to be put right at the provisioner or its backend",
      look: "kubectl --namespace {ns} describe pvc {claimName}",
    },
  },
  "provisioner-silent": {
    link: "claim",
    state: "unbound",
    waiting: "claim-unbound",
    says: "provisioner {provisioner} of StorageClass {class} has made no volume for claim {claim} and says nothing",
    next: "nothing until the provisioner runs; it takes the claim up as soon as it does",
    help: { command: "kubectl get pods --all-namespaces | grep -i provisioner" },
  },
  "access-mode-unmet": {
    link: "claim",
    state: "unbound",
    waiting: "claim-unbound",
    says: "claim {claim} asks for {modes}, which its PersistentVolume {pv} does not offer ({offered})",
    next: "nothing: neither the modes of a claim nor its volume can be changed",
    help: {
      command: "kubectl --namespace {ns} apply --filename CLAIM.yaml",
      note: "a new claim that asks for {offered}",
    },
  },
  "volume-bound-elsewhere": {
    link: "claim",
    state: "unbound",
    waiting: "claim-unbound",
    says: "PersistentVolume {pv}, which claim {claim} asks for by name, belongs to claim {other}",
    next: "nothing as long as {other} has it",
    help: {
      none: "taking the volume from {other} would give its data away; name another volume in a new claim",
    },
  },
  "volume-mode-mismatch": {
    link: "claim",
    state: "mounting",
    says: "claim {claim} is a {mode} volume, but container {container} uses it in {field}",
    next: "nothing: the node refuses it each time",
    help: {
      none: "the pod has to be made again with {wanted}",
      look: "kubectl --namespace {ns} get pod {podName} --output yaml",
    },
  },
  "expand-infeasible": {
    link: "claim",
    state: "growing",
    says: "claim {claim} cannot grow to {wanted}: {where} refuses it for good: {message}",
    next: "it is tried again rarely; the volume goes on working at {size}",
    help: {
      command:
        'kubectl --namespace {ns} patch pvc {claimName} --patch \'{"spec":{"resources":{"requests":{"storage":"{size}"}}}}\'',
      note: "asks for the present size again, which Kubernetes 1.34 and later accept",
    },
  },
  "expand-pending": {
    link: "claim",
    state: "growing",
    says: "claim {claim} is growing from {size} to {wanted}: {message}",
    next: "{then}",
    help: {
      none: "nothing needs doing; the pod may run meanwhile",
      look: "kubectl --namespace {ns} describe pvc {claimName}",
    },
  },
} as const satisfies Record<string, Words>;
