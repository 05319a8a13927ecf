/**
 * The native routes around the conversation: connecting models, agents of one's own, skills, usage.
 *
 * Invariant: a key goes to the server once and is never read back.
 */
import { request } from "./connection";
import { type AgentDefinition, call, json, NativeError, type SkillInfo } from "./native";

export interface Provider {
  name: string;
  base_url: string | null;
  /** Taken when none is named. */
  model: string | null;
  /** The variable that usually holds its key; none where no key is needed. */
  key: string | null;
  local: boolean;
}

export interface Connection {
  name: string;
  provider: string;
  model: string;
  base_url: string | null;
  has_key: boolean;
}

export interface Connect {
  provider: string;
  model?: string;
  base_url?: string;
  api_key?: string;
}

export type Tested =
  | { ok: true; model: string; models: string[]; latency_ms: number; said: string }
  | { ok: false; kind: string; detail: string };

export function listConnections(): Promise<{ connections: Connection[]; providers: Provider[] } | null> {
  return call("/api/connections");
}

export function testConnection(connect: Connect): Promise<Tested | null> {
  return call("/api/connections/test", json("POST", connect));
}

export function saveConnection(name: string, connect: Connect): Promise<Connection | null> {
  return call(`/api/connections/${encodeURIComponent(name)}`, json("PUT", connect));
}

export function removeConnection(name: string): Promise<unknown> {
  return call(`/api/connections/${encodeURIComponent(name)}`, { method: "DELETE" });
}

export interface OwnAgent extends AgentDefinition {
  tool_groups?: string[] | null;
  skills?: string[] | null;
  reasoning_effort?: string | null;
  soul?: string;
}

export type AgentSettings = Partial<Omit<OwnAgent, "name">>;

export function createAgent(name: string, settings: AgentSettings): Promise<OwnAgent | null> {
  return call("/api/agents", json("POST", { name, ...settings }));
}

export function updateAgent(name: string, settings: AgentSettings): Promise<OwnAgent | null> {
  return call(`/api/agents/${encodeURIComponent(name)}`, json("PUT", settings));
}

export function deleteAgent(name: string): Promise<unknown> {
  return call(`/api/agents/${encodeURIComponent(name)}`, { method: "DELETE" });
}

export interface SkillText extends SkillInfo {
  license?: string | null;
  /** Its `SKILL.md`. */
  content?: string;
}

export function readSkill(name: string): Promise<SkillText | null> {
  return call(`/api/skills/${encodeURIComponent(name)}`);
}

/** One of those that did not come with hart. */
export async function deleteSkill(name: string): Promise<void> {
  const answer = await call(`/api/skills/custom/${encodeURIComponent(name)}`, { method: "DELETE" });
  if (!answer) throw new NativeError(404, name);
}

/** From a file of a thread. What speaks against it is the error's message. */
export async function installSkill(threadId: string, path: string): Promise<string> {
  const body = { thread_id: threadId, path };
  const answer = await call<{ skill_name: string }>("/api/skills/install", json("POST", body));
  if (!answer) throw new NativeError(404, path);
  return answer.skill_name;
}

/** From this computer: it passes through a thread that is gone afterwards. */
export async function installSkillFile(file: File): Promise<string> {
  const made = await call<{ thread_id: string }>("/api/threads", json("POST", {}));
  if (!made) throw new NativeError(501, "threads");
  const threadPath = `/api/threads/${encodeURIComponent(made.thread_id)}`;
  try {
    const form = new FormData();
    form.append("files", file, file.name);
    const sent = await call<{ files: { virtual_path?: string; path: string }[] }>(`${threadPath}/uploads`, {
      method: "POST",
      body: form,
    });
    const uploaded = sent?.files[0];
    return await installSkill(made.thread_id, uploaded?.virtual_path ?? uploaded?.path ?? "");
  } finally {
    await request(threadPath, { method: "DELETE" }).catch(() => undefined);
  }
}

export interface Figures {
  llm_call_count: number;
  total_tokens: number;
  input_tokens: number;
  output_tokens: number;
  cost: number | null;
}

export interface Usage {
  days: (Figures & { date: string; runs: number; by_model: Record<string, Figures> })[];
  by_model: Record<string, Figures>;
  by_thread: (Figures & { thread_id: string; title: string | null; runs: number })[];
  total: Figures & { runs: number };
}

export function readUsage(days: number): Promise<Usage | null> {
  const offset = -new Date().getTimezoneOffset();
  return call(`/api/console/usage?days=${days}&utc_offset=${offset}`);
}
