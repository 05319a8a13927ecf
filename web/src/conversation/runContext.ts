/**
 * The choices in the composer, as the agent understands them.
 *
 * Invariant: a mode is only a name for these settings, the same ones DeerFlow's clients send.
 */
import type { Mode, Settings } from "../settings/store";

const EFFORT: Partial<Record<Mode, string>> = { thinking: "low", pro: "medium", ultra: "high" };

export function runContext({ mode, model }: Pick<Settings, "mode" | "model">): Record<string, unknown> {
  return {
    mode,
    thinking_enabled: mode !== "flash",
    is_plan_mode: mode === "pro" || mode === "ultra",
    subagent_enabled: mode === "ultra",
    ...(EFFORT[mode] ? { reasoning_effort: EFFORT[mode] } : {}),
    ...(model ? { model_name: model } : {}),
  };
}
