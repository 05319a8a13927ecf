/**
 * What the server can do, asked once.
 *
 * Invariant: a conversation needs LangGraph's routes alone; what else the server has is shown where it says so.
 */
import type { Client } from "@langchain/langgraph-sdk";
import { useCallback, useEffect, useState } from "react";
import { request } from "../api/connection";
import { type Failure, readFailure } from "../api/failure";
import { readFeatures } from "../api/conversation";
import { listModels, type ModelInfo } from "../api/native";

/** The agent that is always there; whoever talks to it calls it by the name of the whole. */
const LEAD = "lead_agent";

export interface ServerInfo {
  assistants: { id: string; graph: string; name: string; description: string | null }[];
  models: ModelInfo[] | null;
  /** Whether it can put words better: there is a model, and it is allowed. */
  canPolish: boolean;
}

export function useServer(client: Client): { info: ServerInfo | null; failure: Failure | null; ask(): Promise<void> } {
  const [info, setInfo] = useState<ServerInfo | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const ask = useCallback(async () => {
    try {
      const [assistants, models, features] = await Promise.all([
        client.assistants.search({ limit: 50 }),
        listModels().catch(() => null),
        readFeatures().catch(() => null),
      ]);
      setInfo({
        assistants: assistants.map((one) => ({
          id: one.assistant_id,
          graph: one.graph_id,
          name: one.graph_id === LEAD && (one.name || LEAD) === LEAD ? "hart" : one.name || one.graph_id,
          description: (one as { description?: string | null }).description ?? null,
        })),
        models,
        canPolish: features?.polish === true && !isDemo(models),
      });
      setFailure(null);
    } catch (error) {
      setFailure(readFailure(error));
    }
  }, [client]);
  useEffect(() => void ask(), [ask]);
  return { info, failure, ask };
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
