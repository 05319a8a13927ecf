/** The server and its token. Invariant: the token is shown as dots and kept in this browser only. */
import { useId, useState } from "react";
import { readToken, writeToken } from "../api/connection";
import { serverAnswers } from "../app/server";
import { useText } from "../text/language";
import { Button } from "../ui/Button";

export function ConnectionSettings({ onChanged }: { onChanged(): void }) {
  const t = useText();
  const id = useId();
  const [token, setToken] = useState(readToken() ?? "");
  const [reachable, setReachable] = useState<boolean | null>(null);
  const test = async () => {
    writeToken(token.trim() || null);
    setReachable(await serverAnswers());
    onChanged();
  };
  return (
    <form
      className="connection"
      onSubmit={(event) => {
        event.preventDefault();
        void test();
      }}
    >
      <p>
        {t.settings.server}: <code>{location.origin}</code>
      </p>
      <label htmlFor={id}>{t.settings.token}</label>
      <input
        id={id}
        className="field"
        type="password"
        autoComplete="off"
        value={token}
        onChange={(event) => setToken(event.target.value)}
      />
      <p className="panel-note">{t.settings.tokenHint}</p>
      <Button type="submit" look="primary">
        {t.settings.test}
      </Button>{" "}
      <span role="status">{reachable !== null && (reachable ? t.settings.reachable : t.settings.unreachable)}</span>
    </form>
  );
}
