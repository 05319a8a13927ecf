/** A command and what it prints, while it prints it. Invariant: output and errors are told apart. */
import { useActivity } from "../conversation/activityContext";
import { textOf } from "../conversation/message";
import { useText } from "../text/language";
import type { BodyProps } from "./ToolBody";
import { text } from "./kind";
import { commandResult } from "./results";
import { ResultText } from "./ResultText";

export function CommandBody({ call, result }: BodyProps) {
  const t = useText();
  const live = useActivity().output[call.id ?? ""];
  const done = result ? commandResult(textOf(result)) : null;
  return (
    <>
      <pre className="tool-command scroll-thin" tabIndex={0} dir="ltr">
        {text(call.args.command) || JSON.stringify(call.args)}
      </pre>
      {!done && live && <ResultText text={live} keepEnd />}
      {done && (
        <>
          {done.output !== "" && <ResultText text={done.output} bad={result?.status === "error"} />}
          {done.errorOutput !== "" && (
            <>
              <h4 className="tool-heading">{t.tool.errorOutput}</h4>
              <ResultText text={done.errorOutput} bad />
            </>
          )}
          {done.output === "" && done.errorOutput === "" && <p className="tool-note">{t.tool.noOutput}</p>}
          {done.exitCode !== null && <p className="tool-note tool-note-bad">{t.tool.exit(done.exitCode)}</p>}
        </>
      )}
    </>
  );
}
