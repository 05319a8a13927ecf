/** Any tool: what it was given, what it gave back. Invariant: nothing of either is hidden. */
import { picturesOf, textOf } from "../conversation/message";
import { useActivity } from "../conversation/activityContext";
import { useText } from "../text/language";
import type { BodyProps } from "./ToolBody";
import { ResultText } from "./ResultText";

export function GenericBody({ call, result }: BodyProps) {
  const t = useText();
  const live = useActivity().output[call.id ?? ""];
  const given = Object.entries(call.args);
  return (
    <>
      {given.length > 0 && (
        <dl className="arguments">
          {given.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>
                <pre className="tool-text" dir="auto">
                  {typeof value === "string" ? value : JSON.stringify(value, null, 2)}
                </pre>
              </dd>
            </div>
          ))}
        </dl>
      )}
      {!result && live && <ResultText text={live} keepEnd />}
      {result && (
        <>
          <h4 className="tool-heading">{t.tool.result}</h4>
          {textOf(result) !== "" && <ResultText text={textOf(result)} bad={result.status === "error"} />}
          {picturesOf(result).map(
            (picture, index) => picture.data && <img key={index} className="picture" src={picture.data} alt="" />,
          )}
        </>
      )}
    </>
  );
}
