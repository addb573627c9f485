import { isKubeError, SERVER_CODES, type KubeErrorCode } from "../kube/errors.ts";
import type { TokenWanted } from "./objects.ts";

/** Why a pod has no valid token of its service account. The message is for the pod's owner, and holds nothing of a token. */
export class TokenError extends Error {
  override readonly name = "TokenError";
}

/** `token of service account shop/web, audience vault, for pod shop/web-0`. */
export function describeToken({ namespace, serviceAccount, audiences, pod }: TokenWanted): string {
  const audience = audiences.length === 0 ? "" : `, audience ${audiences.join(" and ")},`;
  return `token of service account ${namespace}/${serviceAccount}${audience} for pod ${namespace}/${pod.name}`;
}

export function notIssued(wanted: TokenWanted, cause: unknown): TokenError {
  return new TokenError(
    `${describeToken(wanted)} was not issued: ${refusalOf(cause)}; it is asked for again at the next attempt to mount`,
    { cause },
  );
}

export function notRenewed(wanted: TokenWanted, expiredAt: string, cause: unknown): TokenError {
  return new TokenError(
    `${describeToken(wanted)} expired at ${expiredAt} and could not be renewed: ${refusalOf(cause)}; it is asked for again every few seconds`,
    { cause },
  );
}

/** The server's words. What a client says of its connection is for the log: an owner of a pod can do nothing with it. */
export function refusalOf(error: unknown): string {
  if (!isKubeError(error)) return error instanceof Error ? error.message : String(error);
  const isAnswer = (SERVER_CODES as readonly KubeErrorCode[]).includes(error.code);
  return isAnswer
    ? `TokenRequest was refused: ${error.detail}`
    : `the API server did not answer (${error.code})`;
}
