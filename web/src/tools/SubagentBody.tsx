/** Work handed to a subagent: its task, its steps as they happen, its result. Invariant: the result outlives the steps. */
import { useActivity } from "../conversation/activityContext";
import { type ChatMessage, textOf } from "../conversation/message";
import { Markdown } from "../markdown/Markdown";
import { readableDuration } from "../inspector/steps";
import { useText } from "../text/language";
import type { BodyProps } from "./ToolBody";
import { text } from "./kind";
import type { SubagentActivity, SubagentStep } from "../conversation/activity";

export function SubagentBody({ call, result }: BodyProps) {
  const t = useText();
  const activity = useActivity();
  const told = activity.subagents[call.id ?? ""];
  const steps = told?.steps ?? activity.inner(call.id ?? "");
  const prompt = text(call.args.prompt) || text(call.args.description);
  const usage = usageOf(result) ?? told?.tokens;
  return (
    <>
      {prompt && <p className="tool-note subagent-prompt">{prompt}</p>}
      <Steps steps={steps} />
      <p className="tool-note">
        {text(call.args.subagent_type)}
        {told?.model && ` · ${told.model}`}
        {steps.length > 0 && ` · ${t.tool.steps(steps.length)}`}
        {usage !== undefined && ` · ${t.tool.tokens(usage.toLocaleString())}`}
        {duration(told)}
      </p>
      {told?.error && <p className="tool-note tool-note-bad">{told.error}</p>}
      {result && <Markdown text={textOf(result)} />}
    </>
  );
}

function Steps({ steps }: { steps: readonly SubagentStep[] }) {
  if (steps.length === 0) return null;
  return (
    <ol className="subagent-steps">
      {steps.slice(-8).map((step, index) => (
        <li key={index}>
          {step.tools.length > 0 && <code>{step.tools.join(", ")}</code>} {step.text.slice(0, 240)}
        </li>
      ))}
    </ol>
  );
}

function duration(told: SubagentActivity | undefined): string {
  return told?.endedAt ? ` · ${readableDuration(told.endedAt - told.startedAt)}` : "";
}

function usageOf(result: ChatMessage | undefined): number | undefined {
  const usage = result?.additional_kwargs?.subagent_token_usage as { total_tokens?: unknown } | undefined;
  return typeof usage?.total_tokens === "number" ? usage.total_tokens : undefined;
}
