/**
 * The registration sockets of plugins below one folder. Told as a whole, by level: whoever listens compares with what
 * he knows, so a lost, doubled or late event changes nothing. The real one is `linux-sockets.ts`.
 */
export interface SocketWatch {
  /**
   * Calls `onSockets` with every socket, once at the start and again after changes; several may be told as one. Ends
   * with the signal, never with an error.
   */
  run(onSockets: (sockets: Sockets) => void, signal: AbortSignal): Promise<void>;
}

/** By path, who it is: a socket that was removed and made again is another one. */
export type Sockets = ReadonlyMap<string, string>;
