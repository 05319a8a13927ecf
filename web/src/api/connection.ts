/**
 * The server behind the page: its addresses, the token it may ask for, and the official client for its API.
 *
 * Invariant: a token travels in a header and never in an address.
 */
import { Client } from "@langchain/langgraph-sdk";

const TOKEN_KEY = "hart:token";

/** LangGraph's routes; the SDK appends paths such as `/threads`. */
export const LANGGRAPH_URL = `${location.origin}/api/langgraph`;

export function readToken(): string | null {
  return localStorage.getItem(TOKEN_KEY);
}

export function writeToken(token: string | null): void {
  if (token) localStorage.setItem(TOKEN_KEY, token);
  else localStorage.removeItem(TOKEN_KEY);
}

export function authorization(): Record<string, string> {
  const token = readToken();
  return token ? { Authorization: `Bearer ${token}` } : {};
}

/** `fetch` of a path of this server, with the token if there is one. */
export function request(path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(path, { ...init, headers: { ...authorization(), ...init.headers } });
}

export function createClient(): Client {
  return new Client({
    apiUrl: LANGGRAPH_URL,
    apiKey: null,
    // What failed is tried again by hand or by the reconnection, which say so; four silent tries look like a hang.
    callerOptions: { maxRetries: 1 },
    onRequest: (_url, init) => ({ ...init, headers: { ...(init.headers as object), ...authorization() } }),
  });
}
