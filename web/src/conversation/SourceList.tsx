/** The sources of an answer, folded below it. Invariant: each says where it leads before it is followed. */
import { OutsideLink } from "../markdown/OutsideLink";
import { sourcesOf } from "../markdown/sources";
import { useText } from "../text/language";

export function SourceList({ text }: { text: string }) {
  const t = useText();
  const sources = sourcesOf(text);
  if (sources.length === 0) return null;
  return (
    <details className="sources">
      <summary>
        {t.message.sources} ({sources.length})
      </summary>
      <ol>
        {sources.map((source) => (
          <li key={source.url}>
            <OutsideLink href={source.url}>{source.title}</OutsideLink>
          </li>
        ))}
      </ol>
    </details>
  );
}
