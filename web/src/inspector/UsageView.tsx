/** Tokens used. Invariant: the server's count where it keeps one, the messages' own otherwise. */
import { useEffect, useMemo, useState } from "react";
import { type TokenUsage, tokenUsage } from "../api/native";
import type { ChatMessage } from "../conversation/message";
import { useText } from "../text/language";
import { useModelName, useMoney } from "../usage/models";
import { totalsOf } from "./steps";

interface Props {
  threadId: string | null;
  messages: readonly ChatMessage[];
  busy: boolean;
}

export function UsageView({ threadId, messages, busy }: Props) {
  const t = useText();
  const money = useMoney();
  const modelName = useModelName();
  const [told, setTold] = useState<(TokenUsage & { total_cost?: number | null }) | null>(null);
  const own = useMemo(() => totalsOf(messages), [messages]);
  useEffect(() => {
    if (!threadId || busy) return;
    let alive = true;
    tokenUsage(threadId).then(
      (usage) => alive && setTold(usage),
      () => undefined,
    );
    return () => {
      alive = false;
    };
  }, [threadId, busy]);
  const total = told?.total_tokens || own.total;
  if (total === 0) return null;
  const models: [string, number][] = told?.by_model
    ? Object.entries(told.by_model).map(([name, one]) => [modelName(name), one.tokens])
    : own.byModel;
  const context = told?.context_usage;
  return (
    <section className="usage" aria-label={t.inspector.usage}>
      <p>
        <strong>{total.toLocaleString()}</strong> {t.inspector.usage.toLocaleLowerCase()} (
        {(told?.total_input_tokens || own.input).toLocaleString()} {t.inspector.input},{" "}
        {(told?.total_output_tokens || own.output).toLocaleString()} {t.inspector.output})
        {typeof told?.total_cost === "number" && ` · ${t.around.inspector.cost} ${money(told.total_cost)}`}
      </p>
      {models.map(([name, tokens]) => (
        <p key={name} className="step-facts">
          {models.length > 1 && <meter min={0} max={total} value={tokens} aria-label={name} />} {name}{" "}
          {tokens.toLocaleString()}
        </p>
      ))}
      {/* A model whose window nobody knows is not full, and not empty either. */}
      {context && context.max_context_tokens && context.percentage !== null && (
        <p className="step-facts">
          <meter
            min={0}
            max={context.max_context_tokens}
            value={context.token_count}
            aria-label={t.inspector.context}
          />{" "}
          {t.inspector.context} {Math.round(context.percentage)} %
        </p>
      )}
    </section>
  );
}
