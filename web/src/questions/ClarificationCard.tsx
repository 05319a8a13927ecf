/** A question of the agent, as buttons or a form. Invariant: once answered it shows the answer and cannot be sent again. */
import { useState } from "react";
import type { ChatMessage } from "../conversation/message";
import { Markdown } from "../markdown/Markdown";
import { useText } from "../text/language";
import { Button } from "../ui/Button";
import { Icon } from "../ui/Icon";
import { ClarificationForm } from "./ClarificationForm";
import { answerByOption, answerInWords, type Clarification } from "./clarification";
import "./questions.css";

interface Props {
  asked: Clarification;
  answered: string | undefined;
  /** It is the run's last word, so it can still be answered here. */
  open: boolean;
  onAnswer(message: ChatMessage): void;
}

export function ClarificationCard({ asked, answered, open, onAnswer }: Props) {
  const t = useText();
  return (
    <section className="question" aria-label={t.question.title}>
      <h3>
        <Icon name="question" size={17} /> {t.question.title}
      </h3>
      {asked.context && <Markdown text={asked.context} />}
      <div className="question-text">
        <Markdown text={asked.question} />
      </div>
      {answered !== undefined ? (
        <p className="question-answer">
          <strong>{t.question.answered}:</strong> <span className="said">{answered}</span>
        </p>
      ) : open ? (
        <Answering asked={asked} onAnswer={onAnswer} />
      ) : (
        <ul>
          {asked.options.map((option) => (
            <li key={option.id}>{option.label}</li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Answering({ asked, onAnswer }: Pick<Props, "asked" | "onAnswer">) {
  if (asked.fields.length > 0) {
    return <ClarificationForm fields={asked.fields} onSubmit={(text) => onAnswer(answerInWords(asked, text))} />;
  }
  return (
    <>
      <div className="question-options">
        {asked.options.map((option) => (
          <Button key={option.id} onClick={() => onAnswer(answerByOption(asked, option))}>
            {option.label}
          </Button>
        ))}
      </div>
      <FreeAnswer other={asked.options.length > 0} onSubmit={(text) => onAnswer(answerInWords(asked, text))} />
    </>
  );
}

export function FreeAnswer({ other, onSubmit }: { other: boolean; onSubmit(text: string): void }) {
  const t = useText();
  const [text, setText] = useState("");
  return (
    <form
      className="question-free"
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim()) onSubmit(text.trim());
      }}
    >
      <input
        className="field"
        aria-label={other ? t.question.other : t.question.send}
        placeholder={other ? t.question.other : t.composer.placeholderAnswer}
        value={text}
        dir="auto"
        onChange={(event) => setText(event.target.value)}
      />
      <Button type="submit" look="primary" disabled={!text.trim()}>
        {t.question.send}
      </Button>
    </form>
  );
}
