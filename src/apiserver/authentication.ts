import type { PeerCertificate } from "node:tls";
import type { HandlerUser } from "../kube/handler.ts";

/** Who is at the other end of a connection, as far as TLS can tell. */
export type Peer =
  | { readonly kind: "user"; readonly user: HandlerUser }
  /** Showed nothing. */
  | { readonly kind: "anonymous" }
  /** Showed a certificate that is expired or not from our authority: never treated as nobody. */
  | { readonly kind: "rejected" };

/** The part of a TLS socket that answers the question. */
export interface PeerSocket {
  readonly authorized?: boolean;
  getPeerCertificate?(): PeerCertificate | Record<string, never>;
}

/** Kubernetes reads a client certificate so: the common name is the user, the organisations its groups. */
export function identifyPeer(socket: PeerSocket): Peer {
  const certificate = socket.getPeerCertificate?.() ?? {};
  if (!("subject" in certificate)) return { kind: "anonymous" };
  // Node's types say string; several values of one attribute arrive as a list.
  const { CN, O } = certificate.subject as { CN?: string | string[]; O?: string | string[] };
  const [name] = [CN ?? []].flat();
  if (socket.authorized !== true || name === undefined || name === "") return { kind: "rejected" };
  return { kind: "user", user: { name, groups: [...[O ?? []].flat(), "system:authenticated"] } };
}
