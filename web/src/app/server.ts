/**
 * What the server can do, asked once.
 *
 * Invariant: the page works with LangGraph's routes alone; everything else is only used where it answers.
 */
import type { Client } from "@langchain/langgraph-sdk";
import { useCallback, useEffect, useState } from "react";
import { request } from "../api/connection";
import { type Failure, readFailure } from "../api/failure";
import { listModels, type ModelInfo } from "../api/native";

export interface ServerInfo {
  assistants: { id: string; name: string; description: string | null }[];
  models: ModelInfo[] | null;
  canAttach: boolean;
  canRate: boolean;
}

/** Nobody's thread: only whether the route is there matters. */
const NOBODY = "00000000-0000-4000-8000-000000000000";

export function useServer(client: Client): { info: ServerInfo | null; failure: Failure | null; ask(): Promise<void> } {
  const [info, setInfo] = useState<ServerInfo | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const ask = useCallback(async () => {
    try {
      const [assistants, models, canAttach, canRate] = await Promise.all([
        client.assistants.search({ limit: 50 }),
        listModels().catch(() => null),
        routeExists(`/api/threads/${NOBODY}/uploads/limits`),
        routeExists(`/api/threads/${NOBODY}/runs/${NOBODY}/feedback`),
      ]);
      setInfo({
        assistants: assistants.map((one) => ({
          id: one.assistant_id,
          name: one.name || one.graph_id,
          description: (one as { description?: string | null }).description ?? null,
        })),
        models,
        canAttach,
        canRate,
      });
      setFailure(null);
    } catch (error) {
      setFailure(readFailure(error));
    }
  }, [client]);
  useEffect(() => void ask(), [ask]);
  return { info, failure, ask };
}

/** A missing route and a missing thread both answer 404; the words differ. */
export async function routeExists(path: string): Promise<boolean> {
  try {
    const response = await request(path);
    if (response.ok) return (response.headers.get("content-type") ?? "").includes("json");
    if (response.status !== 404) return response.status !== 405 && response.status !== 501;
    const body = (await response.json()) as { detail?: unknown };
    return body.detail !== "Not Found";
  } catch {
    return false;
  }
}

export async function serverAnswers(): Promise<boolean> {
  try {
    return (await request("/api/langgraph/ok")).ok;
  } catch {
    return false;
  }
}

/** No model of its own: the server plays recordings. */
export function isDemo(models: ModelInfo[] | null): boolean {
  return models !== null && models.every((model) => model.name === "demo");
}
