/** Any tool: what it was given, what it gave back. Invariant: nothing of either is hidden; what stands above is not said twice. */
import { picturesOf, textOf } from "../conversation/message";
import { useActivity } from "../conversation/activityContext";
import { useText } from "../text/language";
import type { BodyProps } from "./ToolBody";
import { kindOf, labelOf, shortPath, subjectOf } from "./kind";
import { ResultText } from "./ResultText";

export function GenericBody({ call, result, active }: BodyProps) {
  const t = useText();
  const live = useActivity().output[call.id ?? ""];
  // The card's head has said these; whoever is asked for consent sees every value as it is.
  const said = (value: unknown) =>
    (result || active) &&
    kindOf(call) !== "generic" &&
    typeof value === "string" &&
    shortPath(value) === subjectOf(call);
  const given = Object.entries(call.args).filter(
    ([name, value]) => !(name === "description" && value === labelOf(call)) && !said(value),
  );
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
