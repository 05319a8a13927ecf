/**
 * The native routes under `/api/`, in DeerFlow's shapes.
 *
 * Invariant: a route that is not there (404, 405, 501) is `null`, never an error: what depends on it is not shown.
 */
import { request } from "./connection";

export interface ModelInfo {
  name: string;
  model?: string;
  display_name?: string | null;
  description?: string | null;
  supports_thinking?: boolean;
  supports_reasoning_effort?: boolean;
  supports_vision?: boolean;
  /** Per million tokens. */
  pricing?: { currency?: string | null; input_per_million?: number; output_per_million?: number } | null;
}

export interface SkillInfo {
  name: string;
  description: string;
  category?: string;
  enabled: boolean;
}

export interface AgentDefinition {
  name: string;
  description?: string | null;
  model?: string | null;
}

export interface UploadedFile {
  filename: string;
  size: number;
  path: string;
  virtual_path?: string;
  artifact_url?: string;
}

export interface TokenUsage {
  total_tokens: number;
  total_input_tokens: number;
  total_output_tokens: number;
  total_runs: number;
  by_model?: Record<string, { tokens: number; runs: number }>;
  by_caller?: Record<string, number>;
  context_usage?: { token_count: number; max_context_tokens: number | null; percentage: number | null } | null;
}

export interface ChangedFile {
  path: string;
  status: string;
  binary?: boolean;
  diff?: string | null;
  diff_unavailable_reason?: string | null;
  additions?: number;
  deletions?: number;
}

export interface WorkspaceChanges {
  files?: ChangedFile[];
}

/** What the server cannot do, answered with one of these. */
const ABSENT = new Set([404, 405, 501]);

export class NativeError extends Error {
  constructor(
    readonly status: number,
    detail: string,
  ) {
    super(detail);
    this.name = "NativeError";
  }
}

/** The answer of a route that every server has: whatever it refuses is an error. */
export async function ask<T>(path: string, init?: RequestInit): Promise<T> {
  const response = await request(path, init);
  if (!response.ok) throw new NativeError(response.status, await detailOf(response));
  return (await response.json()) as T;
}

export async function call<T>(path: string, init?: RequestInit): Promise<T | null> {
  const response = await request(path, init);
  if (ABSENT.has(response.status)) return null;
  if (!response.ok) throw new NativeError(response.status, await detailOf(response));
  if (response.status === 204) return null;
  // A page in place of an answer means that nobody serves the route.
  if (!(response.headers.get("content-type") ?? "").includes("json")) return null;
  return (await response.json()) as T;
}

async function detailOf(response: Response): Promise<string> {
  const text = await response.text();
  try {
    const body = JSON.parse(text) as { detail?: unknown };
    if (typeof body.detail === "string") return body.detail;
    return JSON.stringify(body.detail ?? body);
  } catch {
    return text.slice(0, 300) || `HTTP ${response.status}`;
  }
}

export function json(method: string, body: unknown): RequestInit {
  return { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
}

export const thread = (id: string) => `/api/threads/${encodeURIComponent(id)}`;

export async function listModels(): Promise<ModelInfo[] | null> {
  return (await call<{ models: ModelInfo[] }>("/api/models"))?.models ?? null;
}

export async function listSkills(): Promise<SkillInfo[] | null> {
  return (await call<{ skills: SkillInfo[] }>("/api/skills"))?.skills ?? null;
}

export function setSkillEnabled(name: string, enabled: boolean): Promise<unknown> {
  return call(`/api/skills/${encodeURIComponent(name)}`, json("PUT", { enabled }));
}

export async function listAgents(): Promise<AgentDefinition[] | null> {
  const answer = await call<{ agents: AgentDefinition[] } | AgentDefinition[]>("/api/agents");
  if (answer === null) return null;
  return Array.isArray(answer) ? answer : answer.agents;
}

export async function listUploads(threadId: string): Promise<UploadedFile[] | null> {
  return (await call<{ files: UploadedFile[] }>(`${thread(threadId)}/uploads/list`))?.files ?? null;
}

export function tokenUsage(threadId: string): Promise<TokenUsage | null> {
  return call(`${thread(threadId)}/token-usage`);
}

export function workspaceChanges(threadId: string, runId: string): Promise<WorkspaceChanges | null> {
  const query = "include_files=true&include_diff=true";
  return call(`${thread(threadId)}/runs/${encodeURIComponent(runId)}/workspace-changes?${query}`);
}

/** The address of a file of the thread; it carries no token and is only ever fetched. */
export function artifactPath(threadId: string, path: string): string {
  const encoded = path.replace(/^\/+/, "").split("/").map(encodeURIComponent).join("/");
  return `${thread(threadId)}/artifacts/${encoded}`;
}

export interface SavedArtifact {
  path: string;
  sha256: string;
  size: number;
}

/** Refused with 409 or 412 when the file is no longer the one that was read. */
export function saveArtifact(
  threadId: string,
  path: string,
  content: string,
  expectedSha256: string,
): Promise<SavedArtifact | null> {
  const init = json("PUT", { content, expected_sha256: expectedSha256 });
  init.headers = { ...init.headers, "If-Match": `"${expectedSha256}"` };
  return call(artifactPath(threadId, path), init);
}
