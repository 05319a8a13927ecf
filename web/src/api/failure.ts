/**
 * What went wrong, as something a person can act on.
 *
 * Invariant: every error becomes one kind out of a closed list, and each kind has a next step in `text/`.
 */

export type FailureKind =
  | "offline" // the server does not answer
  | "token" // it asks for a token
  | "gone" // what was asked for is not there (any more)
  | "busy" // another run holds the thread
  | "too-large"
  | "refused" // the request was understood and refused
  | "model" // the model's provider failed
  | "limit" // a budget or a step limit was reached
  | "interrupted" // the server stopped in the middle of a run
  | "server"; // anything else on the other side

export interface Failure {
  kind: FailureKind;
  /** The other side's own words. */
  detail: string;
}

/** How browsers and the client say that nobody answered. */
const NETWORK =
  /^(unable to connect|failed to fetch|network ?error|network:|load failed|exceeded maximum sse|error in input stream|no sse bytes)/i;

/** Reads anything that was thrown or arrived as an `error` event. */
export function readFailure(thrown: unknown): Failure {
  const status = statusOf(thrown);
  const name = nameOf(thrown);
  const detail = detailOf(thrown);
  if (status !== undefined) return { kind: kindOfStatus(status, detail), detail };
  if (NETWORK.test(messageOf(thrown))) return { kind: "offline", detail };
  return { kind: kindOfRunError(name, detail), detail };
}

function kindOfStatus(status: number, detail: string): FailureKind {
  switch (status) {
    case 401:
    case 403:
      return "token";
    case 404:
    case 410:
      return "gone";
    case 409:
      return "busy";
    case 413:
      return "too-large";
    case 502:
    case 503:
    case 504:
      return "offline";
    default:
      if (status >= 500) return kindOfRunError("", detail);
      return "refused";
  }
}

function kindOfRunError(name: string, detail: string): FailureKind {
  if (/Orphan/i.test(name)) return "interrupted";
  if (/Recursion|Budget|Limit(Reached|Exceeded)/i.test(name)) return "limit";
  if (/Model|Provider|OpenAI|Anthropic|RateLimit|Authentication/i.test(name)) return "model";
  if (/\b(model|api key|provider|rate limit|quota)\b/i.test(detail)) return "model";
  return "server";
}

function statusOf(thrown: unknown): number | undefined {
  if (isObject(thrown) && typeof thrown.status === "number") return thrown.status;
  const match = /^HTTP (\d{3})\b/.exec(messageOf(thrown));
  return match ? Number(match[1]) : undefined;
}

function nameOf(thrown: unknown): string {
  if (!isObject(thrown)) return "";
  // `StreamError` carries the class on the other side in `name`; a raw event has it in `error`.
  if (typeof thrown.error === "string") return thrown.error;
  return typeof thrown.name === "string" ? thrown.name : "";
}

function detailOf(thrown: unknown): string {
  const message = messageOf(thrown);
  const json = message.indexOf("{");
  if (json >= 0) {
    try {
      const body: unknown = JSON.parse(message.slice(json));
      if (isObject(body)) {
        const detail = body.detail ?? body.message ?? body.error;
        if (typeof detail === "string") return detail;
        if (isObject(detail) && typeof detail.message === "string") return detail.message;
      }
    } catch {
      // Not JSON after all: the message itself is the best there is.
    }
  }
  return message;
}

function messageOf(thrown: unknown): string {
  if (typeof thrown === "string") return thrown;
  if (isObject(thrown) && typeof thrown.message === "string") return thrown.message;
  return String(thrown);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
