/**
 * Markdown that somebody else wrote.
 *
 * Invariant: raw HTML stays text, links say where they lead before they are followed, pictures from elsewhere load only
 * when a person asks for them.
 */
import { memo, useMemo } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import remarkMath from "remark-math";
import { safeLink, threadFile } from "./address";
import { splitBlocks } from "./blocks";
import { CodeBlock } from "./CodeBlock";
import { FileLink } from "./FileLink";
import { Formula } from "./Formula";
import { loneFormula } from "./loneFormula";
import { OutsideLink } from "./OutsideLink";
import { RemotePicture } from "./RemotePicture";
import { withoutCitationMark } from "./sources";
import "./markdown.css";

export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const blocks = useMemo(() => splitBlocks(text), [text]);
  return (
    <div className="markdown" dir="auto">
      {blocks.map((block, index) => (
        <Block key={index} text={block} />
      ))}
    </div>
  );
});

const PLUGINS = [remarkGfm, [remarkMath, { singleDollarTextMath: true }] as [typeof remarkMath, object], loneFormula];

const Block = memo(function Block({ text }: { text: string }) {
  return (
    <ReactMarkdown remarkPlugins={PLUGINS} urlTransform={keepAddress} components={COMPONENTS}>
      {text}
    </ReactMarkdown>
  );
});

/** The components decide what an address may do; without this the library would drop those of files. */
const keepAddress = (url: string) => url;

const COMPONENTS: Components = {
  a({ href, children }) {
    const file = threadFile(href);
    if (file) return <FileLink path={file}>{children}</FileLink>;
    const link = safeLink(href);
    if (link?.startsWith("#")) return <a href={link}>{children}</a>;
    const shown = typeof children === "string" ? withoutCitationMark(children) : children;
    return link ? <OutsideLink href={link}>{shown}</OutsideLink> : <span>{shown}</span>;
  },
  img({ src, alt }) {
    return <RemotePicture src={typeof src === "string" ? src : ""} alt={alt ?? ""} />;
  },
  pre({ children }) {
    return <>{children}</>;
  },
  code({ className, children }) {
    const text = String(children ?? "");
    if (className?.includes("math-")) {
      return <Formula tex={text.replace(/\n$/, "")} display={className.includes("math-display")} />;
    }
    const language = /language-([\w+#-]+)/.exec(className ?? "")?.[1];
    if (language === undefined && !text.includes("\n")) return <code>{children}</code>;
    return <CodeBlock code={text.replace(/\n$/, "")} language={language ?? ""} />;
  },
  table({ children }) {
    return (
      <div className="markdown-table scroll-thin" tabIndex={0} role="region" aria-label="table">
        <table>{children}</table>
      </div>
    );
  },
  input({ checked, type }) {
    return type === "checkbox" ? <input type="checkbox" checked={checked === true} readOnly disabled /> : null;
  },
};
