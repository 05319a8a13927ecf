/** The empty conversation. Invariant: it teaches by something that can be pressed. */
import { useState } from "react";
import { readableKeys } from "../palette/command";
import { useText } from "../text/language";
import { Button } from "../ui/Button";
import type { ServerInfo } from "./server";
import { isDemo } from "./server";

interface Props {
  info: ServerInfo | null;
  onTry(prompt: string): void;
  onLookAgain(): Promise<void>;
}

export function Welcome({ info, onTry, onLookAgain }: Props) {
  const t = useText();
  const demo = info !== null && isDemo(info.models);
  const [before, after] = t.welcome.tips.split("{keys}");
  return (
    <div className="welcome">
      <img src="/favicon.svg" alt="" width="52" height="52" />
      <h1>{t.welcome.title}</h1>
      <p className="welcome-text">{demo ? t.welcome.demo : t.welcome.text}</p>
      <ul className="examples">
        {t.welcome.examples.map((example) => (
          <li key={example.title}>
            <button type="button" onClick={() => onTry(example.prompt)}>
              <strong>{example.title}</strong>
              <span>{example.prompt}</span>
            </button>
          </li>
        ))}
      </ul>
      {demo && <ConnectModel onLookAgain={onLookAgain} />}
      <p className="welcome-tip">
        {before}
        <kbd>{readableKeys("mod+k")}</kbd>
        {after}
      </p>
    </div>
  );
}

const KEYS = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "DEEPSEEK_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"];

export function ConnectModel({ onLookAgain }: { onLookAgain(): Promise<void> }) {
  const t = useText();
  const [looking, setLooking] = useState(false);
  return (
    <section className="connect" aria-label={t.welcome.connectTitle}>
      <h2>{t.welcome.connectTitle}</h2>
      <h3>{t.welcome.connectKey}</h3>
      <p>{t.welcome.connectKeyText}</p>
      <pre className="tool-text">{KEYS.map((key) => `export ${key}=…`).join("\n")}</pre>
      <h3>{t.welcome.connectLocal}</h3>
      <p>{t.welcome.connectLocalText}</p>
      <Button
        disabled={looking}
        icon="again"
        onClick={() => {
          setLooking(true);
          void onLookAgain().finally(() => setLooking(false));
        }}
      >
        {t.welcome.connectTest}
      </Button>
    </section>
  );
}
