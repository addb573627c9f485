import { expect, test } from "vitest";
import { inContext } from "./words.ts";

const KUBECTL = "kubectl --namespace shop get pods";

for (const [given, context, command] of [
  [KUBECTL, {}, KUBECTL],
  [KUBECTL, { kubeconfig: "admin.conf" }, "kubectl --kubeconfig admin.conf --namespace shop get pods"],
  [KUBECTL, { context: "prod" }, "kubectl --context prod --namespace shop get pods"],
  [
    KUBECTL,
    { kubeconfig: "/home/me/my files/o'neil.conf", context: "a b" },
    "kubectl --kubeconfig '/home/me/my files/o'\\''neil.conf' --context 'a b' --namespace shop get pods",
  ],
  [
    "kubectl get pods --all-namespaces | grep -i attacher",
    { kubeconfig: "f" },
    "kubectl --kubeconfig f get pods --all-namespaces | grep -i attacher",
  ],
  ["mooring why node/a", { kubeconfig: "f" }, "mooring why node/a --kubeconfig f"],
  ["mooring get attachments", { kubeconfig: "f" }, "mooring get attachments --kubeconfig f"],
  // What a shell would expand stays what it is.
  ["kubectl get nodes", { kubeconfig: "$(reboot)" }, "kubectl --kubeconfig '$(reboot)' get nodes"],
  ["kubectl get nodes", { kubeconfig: "$&" }, "kubectl --kubeconfig '$&' get nodes"],
] as const) {
  test(`${given} with ${JSON.stringify(context)}: ${command}`, () => {
    expect(inContext(given, context)).toBe(command);
  });
}
