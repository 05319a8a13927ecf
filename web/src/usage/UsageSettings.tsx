/** Tokens and money, by day, model and conversation. Invariant: every figure of a chart is in a table, too. */
import { useEffect, useId, useState } from "react";
import { type Figures, readUsage, type Usage } from "../api/around";
import { pathOf } from "../app/route";
import { useText } from "../text/language";
import { Field } from "../ui/Field";
import { DayChart } from "./DayChart";
import { dayBars, type Measure, modelsByUse, shortNumber } from "./figures";
import { useModelName, useMoney } from "./models";
import "./usage.css";

const PERIODS = [7, 30, 90];

interface Props {
  onOpen(threadId: string): void;
}

export function UsageSettings({ onOpen }: Props) {
  const t = useText();
  const words = t.around.usage;
  const id = useId();
  const [days, setDays] = useState(30);
  const [measure, setMeasure] = useState<Measure>("total_tokens");
  const [usage, setUsage] = useState<Usage | null | undefined>(undefined);
  useEffect(() => {
    let alive = true;
    readUsage(days).then(
      (found) => alive && setUsage(found),
      () => alive && setUsage(null),
    );
    return () => {
      alive = false;
    };
  }, [days]);
  const cost = useMoney();
  const modelName = useModelName();
  const readable = measure === "cost" ? cost : shortNumber;
  const names: Record<Measure, string> = { total_tokens: words.tokens, cost: words.cost, runs: words.runs };
  return (
    <div className="usage-page">
      <div className="form-pair">
        <Field id={`${id}-days`} label={words.period}>
          <select
            id={`${id}-days`}
            className="field"
            value={days}
            onChange={(event) => setDays(Number(event.target.value))}
          >
            {PERIODS.map((period) => (
              <option key={period} value={period}>
                {words.days(period)}
              </option>
            ))}
          </select>
        </Field>
        <Field id={`${id}-measure`} label={words.measure}>
          <select
            id={`${id}-measure`}
            className="field"
            value={measure}
            onChange={(event) => setMeasure(event.target.value as Measure)}
          >
            {(["total_tokens", "cost", "runs"] as const).map((one) => (
              <option key={one} value={one}>
                {names[one]}
              </option>
            ))}
          </select>
        </Field>
      </div>
      {usage === undefined && <p className="panel-note">{t.files.loading}</p>}
      {usage === null && <p className="panel-note">{words.unavailable}</p>}
      {usage && usage.total.runs === 0 && <p className="panel-note">{words.none}</p>}
      {usage && usage.total.runs > 0 && (
        <>
          <p className="usage-total">
            <strong>{usage.total.total_tokens.toLocaleString()}</strong> {words.tokens.toLocaleLowerCase()}
            {usage.total.cost !== null && (
              <>
                {" · "}
                <strong>{cost(usage.total.cost)}</strong>
              </>
            )}
            {" · "}
            {usage.total.runs.toLocaleString()} {words.runs.toLocaleLowerCase()}
          </p>
          {measure === "cost" && usage.total.cost === null ? (
            <p className="panel-note">{words.noPrice}</p>
          ) : (
            <DayChart
              bars={dayBars(usage, measure, "…", undefined, modelName)}
              title={`${words.perDay}: ${names[measure]}`}
              readable={readable}
            />
          )}
          <details className="more">
            <summary>{words.table}</summary>
            <FiguresTable
              caption={words.perDay}
              head={words.day}
              cost={cost}
              rows={usage.days
                .filter((day) => day.runs > 0)
                .map((day) => ({ key: day.date, name: day.date, figures: day }))}
            />
          </details>
          <FiguresTable
            caption={words.perModel}
            head={t.model.label}
            cost={cost}
            rows={modelsByUse(usage).map((name) => ({
              key: name,
              name: modelName(name),
              figures: usage.by_model[name] as Figures,
            }))}
          />
          <FiguresTable
            caption={words.perThread}
            head={t.message.transcript}
            cost={cost}
            rows={usage.by_thread.map((thread) => ({
              key: thread.thread_id,
              name: (
                <a
                  href={pathOf(thread.thread_id)}
                  onClick={(event) => {
                    event.preventDefault();
                    onOpen(thread.thread_id);
                  }}
                >
                  {thread.title || t.untitled}
                </a>
              ),
              figures: thread,
            }))}
          />
          <p className="panel-note">{words.note}</p>
        </>
      )}
    </div>
  );
}

interface TableProps {
  caption: string;
  head: string;
  cost(value: number): string;
  rows: { key: string; name: React.ReactNode; figures: Figures }[];
}

function FiguresTable({ caption, head, cost, rows }: TableProps) {
  const t = useText();
  const words = t.around.usage;
  if (rows.length === 0) return null;
  return (
    <div className="usage-table scroll-thin" tabIndex={0} role="region" aria-label={caption}>
      <table className="table">
        <caption>{caption}</caption>
        <thead>
          <tr>
            <th scope="col">{head}</th>
            <th scope="col">{words.calls}</th>
            <th scope="col">{words.input}</th>
            <th scope="col">{words.output}</th>
            <th scope="col">{words.tokens}</th>
            <th scope="col">{words.cost}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, name, figures }) => (
            <tr key={key}>
              <th scope="row" dir="auto">
                {name}
              </th>
              <td>{figures.llm_call_count.toLocaleString()}</td>
              <td>{figures.input_tokens.toLocaleString()}</td>
              <td>{figures.output_tokens.toLocaleString()}</td>
              <td>{figures.total_tokens.toLocaleString()}</td>
              <td>{figures.cost === null ? "–" : cost(figures.cost)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
