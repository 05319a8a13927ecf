/**
 * The rows of a conversation, of which only those in sight are in the page.
 *
 * Invariant: it follows the newest text as long as the reader is at the end, and stays put otherwise.
 */
import { type ReactNode, type RefObject, useEffect, useLayoutEffect, useRef, useState } from "react";
import { Virtualizer, type VirtualizerHandle } from "virtua";
import { useText } from "../text/language";
import { IconButton } from "../ui/Button";
import { AssistantMessage } from "./AssistantMessage";
import { HumanMessage } from "./HumanMessage";
import type { RowHandlers } from "./handlers";
import type { Transcript } from "./rows";
import type { Turns } from "./turns";
import type { Branches } from "./useBranches";
import type { Forks } from "./useForks";
import { BranchOf } from "./BranchLinks";

interface Props {
  transcript: Transcript;
  busy: boolean;
  turns: Turns;
  /** The runs that messages came from, by the id of the message. */
  runs: ReadonlyMap<string, string>;
  /** The newest message asks for something and is not the end. */
  asking: boolean;
  forks: Forks;
  branches: Branches;
  handlers: RowHandlers;
  /** Below the rows: questions, failures, what it is doing. */
  children: ReactNode;
}

/** How near to the end counts as at the end. */
const NEAR = 60;

export function TranscriptView({ transcript, busy, turns, runs, asking, forks, branches, handlers, children }: Props) {
  const t = useText();
  const scroller = useRef<HTMLDivElement>(null);
  const list = useRef<VirtualizerHandle>(null);
  const { atEnd, toEnd } = useFollow(scroller);
  const { rows, answers } = transcript;
  const lastHuman = rows.findLastIndex((row) => row.kind === "human");
  const asked = rows[lastHuman]?.key;
  // Whoever asks wants to see the answer, wherever they were reading.
  const askedBefore = useRef(asked);
  useLayoutEffect(() => {
    if (askedBefore.current !== asked) toEnd();
    askedBefore.current = asked;
  });
  return (
    <div className="transcript-frame">
      <div
        ref={scroller}
        className="transcript scroll-thin"
        role="log"
        aria-label={t.message.transcript}
        aria-busy={busy}
        aria-live="off"
        tabIndex={0}
      >
        <div className="transcript-content">
          <Virtualizer ref={list} scrollRef={scroller} bufferSize={800}>
            {branches.parent && (
              <div key="branch-of" className="row">
                <BranchOf parent={branches.parent} onOpen={handlers.open} />
              </div>
            )}
            {rows.map((row, index) => (
              <div key={row.key} className="row">
                {row.kind === "human" ? (
                  <HumanMessage
                    row={row}
                    handlers={handlers}
                    fork={forks.get(row.message.id ?? "")}
                    branches={branches.children.get(row.message.id ?? "")}
                  />
                ) : (
                  <AssistantMessage
                    row={row}
                    handlers={handlers}
                    answers={answers}
                    active={busy && index > lastHuman}
                    newest={index === rows.length - 1}
                    asking={asking && index === rows.length - 1}
                    turn={turns.get(row.key)}
                    runId={runs.get(row.message.id ?? "")}
                    fork={forks.get(row.message.id ?? "")}
                    branches={branches.children.get(row.message.id ?? "")}
                  />
                )}
              </div>
            ))}
          </Virtualizer>
          <div className="row">{children}</div>
        </div>
      </div>
      {!atEnd && (
        <div className="jump">
          <IconButton className="jump-button" label={t.message.jump} icon="arrowDown" onClick={toEnd} />
        </div>
      )}
    </div>
  );
}

function useFollow(scroller: RefObject<HTMLDivElement | null>) {
  const [atEnd, setAtEnd] = useState(true);
  const following = useRef(true);
  const toEnd = () => {
    following.current = true;
    setAtEnd(true);
    if (scroller.current) scroller.current.scrollTop = scroller.current.scrollHeight;
  };
  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    let lastTop = element.scrollTop;
    const onScroll = () => {
      const near = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR;
      // Only a person scrolls up; the page itself never does.
      if (near) following.current = true;
      else if (element.scrollTop < lastTop - 2) following.current = false;
      lastTop = element.scrollTop;
      setAtEnd(near || following.current);
    };
    const grown = new ResizeObserver(() => {
      if (following.current) element.scrollTop = element.scrollHeight;
    });
    element.addEventListener("scroll", onScroll, { passive: true });
    if (element.firstElementChild) grown.observe(element.firstElementChild);
    grown.observe(element);
    return () => {
      element.removeEventListener("scroll", onScroll);
      grown.disconnect();
    };
  }, [scroller]);
  useLayoutEffect(() => {
    if (following.current && scroller.current) scroller.current.scrollTop = scroller.current.scrollHeight;
  });
  return { atEnd, toEnd };
}
