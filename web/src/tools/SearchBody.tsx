/** What a search found. Invariant: titles and texts of strangers stay text. */
import { textOf } from "../conversation/message";
import { hostOf, safeLink } from "../markdown/address";
import { OutsideLink } from "../markdown/OutsideLink";
import { useText } from "../text/language";
import type { BodyProps } from "./ToolBody";
import { searchHits } from "./results";
import { ResultText } from "./ResultText";

export function SearchBody({ result }: BodyProps) {
  const t = useText();
  const hits = searchHits(result);
  if (!result) return null;
  if (!hits) return <ResultText text={textOf(result)} bad={result.status === "error"} />;
  return (
    <>
      <p className="tool-note">{t.tool.hits(hits.length)}</p>
      <ol className="hits">
        {hits.map((hit, index) => {
          const link = safeLink(hit.url);
          return (
            <li key={index}>
              {link ? <OutsideLink href={link}>{hit.title || hostOf(link)}</OutsideLink> : hit.title}
              {hit.snippet && <p className="tool-note">{hit.snippet.slice(0, 300)}</p>}
            </li>
          );
        })}
      </ol>
    </>
  );
}
