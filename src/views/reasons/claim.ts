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
  "claim-not-made": {
    link: "claim",
    state: "unbound",
    waiting: "claim-missing",
    confidence: "likely",
    says: "claim {claim}, which is to be made for the pod's ephemeral volume {volume}, does not exist: no controller has made it",
    next: "kube-controller-manager makes it within seconds where it runs; a quota may forbid it",
    help: {
      command: "kubectl --namespace {ns} describe pod {podName}",
      note: "its events say whether the claim was refused",
    },
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
  "claim-finalizers": {
    link: "claim",
    state: "unbound",
    says: "claim {claim} is being deleted and kept by {keepers}; no pod keeps it",
    next: "it goes when whoever set the finalizer has removed it; then a claim of that name can be made again",
    help: {
      none: "a finalizer is removed by its owner once it is done; by hand it leaves behind what it protects",
      look: "kubectl --namespace {ns} describe pvc {claimName}",
    },
  },
  "claim-deleted-in-use": {
    link: "claim",
    state: "waiting",
    says: "claim {claim} was deleted while pod {users} uses it, and goes when that pod ends",
    next: "the pod goes on until it ends; then the claim goes, and {fate}",
    help: {
      none: "a deletion cannot be taken back: save what the volume has before the pod ends",
      look: "kubectl get pv {pv} --output yaml",
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
      command: "kubectl annotate storageclass {class} storageclass.kubernetes.io/is-default-class=true",
      note: "every claim without a class then gets a volume of it",
    },
  },
  "claim-static-unmatched": {
    link: "claim",
    state: "unbound",
    waiting: "claim-unbound",
    says: "claim {claim} takes only an existing PersistentVolume ({which}), and there is none for it",
    next: "it is bound within 15 s after a PersistentVolume that fits is made",
    help: { command: "kubectl apply --filename VOLUME.yaml" },
  },
  "claim-volume-unfit": {
    link: "claim",
    state: "unbound",
    waiting: "claim-unbound",
    says: "claim {claim} takes only an existing PersistentVolume ({which}), and none fits it: {misfits}",
    next: "it is bound within 15 s after a PersistentVolume that fits is there; a claim cannot be changed to fit",
    help: {
      none: "make a PersistentVolume that fits, or the claim anew so that it fits one",
      look: "kubectl get persistentvolumes",
    },
  },
  "binder-silent": {
    link: "claim",
    state: "unbound",
    confidence: "likely",
    waiting: "claim-unbound",
    says: "claim {claim} is meant for PersistentVolume {meant}, which fits it, and nobody binds the two",
    next: "kube-controller-manager, or `mooring up`, binds them within 15 s where it runs",
    help: {
      command: "kubectl --namespace kube-system get leases,pods",
      note: "is kube-controller-manager running?",
    },
  },
  "selected-node-missing": {
    link: "claim",
    state: "unbound",
    waiting: "claim-unbound",
    says: "claim {claim} is to get its volume on node {selected}, which does not exist",
    next: "nothing: a provisioner makes no volume for a node that is gone, and the scheduler does not choose twice",
    help: {
      command: "kubectl --namespace {ns} annotate pvc {claimName} volume.kubernetes.io/selected-node-",
      note: "then the scheduler chooses another node for the next pod that waits for the claim",
    },
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
    confidence: "likely",
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
