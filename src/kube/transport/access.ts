/** How to reach one cluster and who we are there: what a kubeconfig boils down to. */
export interface ClusterAccess {
  /** `https://host:port[/prefix]`, without a slash at the end. */
  readonly server: string;
  /** Looked at before every request: other authorities than before need other connections. */
  readonly tls: TlsOptions;
  /** http, https or socks5 URL; absent means a direct connection. */
  readonly proxyUrl?: string;
  /** The namespace of the context; absent where the kubeconfig names none. */
  readonly namespace?: string;
  readonly credentials: Credentials;
  /** `Impersonate-*` headers, sent with every request; a list is sent as several header lines. */
  readonly impersonation: Readonly<Record<string, string | readonly string[]>>;
}

export interface TlsOptions {
  /** PEM; absent means the system's roots. */
  readonly ca?: string;
  /** Name to expect in the server's certificate instead of the URL's host. */
  readonly serverName?: string;
  readonly insecureSkipVerify?: boolean;
}

/** What a request carries to say who we are. Asked before every request, so it must answer from a cache. */
export interface Credentials {
  current(signal?: AbortSignal): Promise<Credential>;
  /**
   * The server answered 401 to `credential`. True if asking again may give a better one (a token file was
   * rotated, an exec plugin can be run again): the transport then tries once more.
   */
  rejected(credential: Credential): boolean;
}

export interface Credential {
  /** `Bearer ...` or `Basic ...`. */
  readonly authorization?: string;
  readonly clientCertificate?: ClientCertificate;
}

/** Both PEM. */
export interface ClientCertificate {
  readonly certificate: string;
  readonly key: string;
}

/** Nobody: an API server that asks for nothing, or a proxy that adds it. */
export const anonymous: Credentials = {
  current: async () => ({}),
  rejected: () => false,
};
