/** What a paused run waits for. Invariant: all open questions are answered together, each under its own id. */
import { useState } from "react";
import { Markdown } from "../markdown/Markdown";
import { useText } from "../text/language";
import { Button } from "../ui/Button";
import { Icon } from "../ui/Icon";
import { ApprovalCard } from "./ApprovalCard";
import { approvalAnswer, type Question } from "./approval";
import { FreeAnswer } from "./ClarificationCard";
import "./questions.css";

export function QuestionPanel({ questions, onResume }: { questions: Question[]; onResume(answers: unknown[]): void }) {
  const t = useText();
  const [answers, setAnswers] = useState<ReadonlyMap<number, unknown>>(new Map());
  const give = (index: number, value: unknown) => {
    const next = new Map(answers).set(index, value);
    setAnswers(next);
    if (next.size === questions.length) onResume(questions.map((_, position) => next.get(position)));
  };
  return (
    <>
      {questions.map((question, index) => {
        if (answers.has(index)) return null;
        if (question.kind === "breakpoint") {
          return (
            <section key={index} className="question">
              <p>{t.approval.paused}</p>
              <Button look="primary" onClick={() => give(index, null)}>
                {t.approval.resume}
              </Button>
            </section>
          );
        }
        if (question.kind === "approval") {
          return (
            <ApprovalCard
              key={question.id ?? index}
              actions={question.actions}
              onDecide={(decisions) => give(index, approvalAnswer(question, decisions))}
            />
          );
        }
        return (
          <section key={question.id ?? index} className="question" aria-label={t.question.title}>
            <h3>
              <Icon name="question" size={17} /> {t.question.title}
            </h3>
            <Markdown text={question.text} />
            <FreeAnswer other={false} onSubmit={(text) => give(index, text)} />
          </section>
        );
      })}
    </>
  );
}
