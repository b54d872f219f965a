export const PROXY_PROTOCOLS = ['http', 'https', 'socks4', 'socks5'] as const;

/** A proxy, as it is configured. */
export interface CustomProxy {
  readonly protocol: (typeof PROXY_PROTOCOLS)[number];
  readonly host: string;
  readonly port: number;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
}

/** The place of a proxy for an account: a country, or the region of an address. The service runs no proxies. */
export interface AutoProxy {
  /** ISO 3166-1 alpha-2. */
  readonly country?: string | undefined;
  /** IPv4. */
  readonly ip?: string | undefined;
}

/** A host name or address that can be written into a URL. */
export const isProxyHost = (text: string): boolean =>
  /^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$/.test(text) || /^\[?[0-9A-Fa-f:.]{2,45}\]?$/.test(text);
