/** The empty conversation. Invariant: it teaches by something that can be pressed. */
import { lazy, Suspense } from "react";
import { readableKeys } from "../palette/command";
import { en } from "../text/en";
import { useText } from "../text/language";
import { say } from "../ui/toast";
import type { ServerInfo } from "./server";
import { isDemo } from "./server";

const ConnectModel = lazy(() => import("../connect/ConnectModel").then((m) => ({ default: m.ConnectModel })));

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
        {t.welcome.examples.map((example, index) => {
          // A recording answers to the words that it was made with.
          const prompt = (demo && en.welcome.examples[index]?.prompt) || example.prompt;
          return (
            <li key={example.title}>
              <button type="button" onClick={() => onTry(prompt)}>
                <strong>{example.title}</strong>
                <span>{prompt}</span>
              </button>
            </li>
          );
        })}
      </ul>
      {demo && (
        <Suspense fallback={<section className="connect connect-waiting" />}>
          <ConnectModel
            onConnected={async ({ model }) => {
              await onLookAgain();
              say(t.around.connect.connected(model));
            }}
          />
        </Suspense>
      )}
      <p className="welcome-tip">
        {before}
        <kbd>{readableKeys("mod+k")}</kbd>
        {after}
      </p>
    </div>
  );
}
