/** Ways to the conversations beside this one. Invariant: links, so that each can be opened in a tab of its own. */
import { pathOf } from "../app/route";
import { useText } from "../text/language";
import { Icon } from "../ui/Icon";
import { Menu } from "../ui/Menu";
import type { BranchLink } from "./useBranches";

export function BranchOf({ parent, onOpen }: { parent: BranchLink; onOpen(threadId: string): void }) {
  const t = useText();
  return (
    <p className="branch-of">
      <Icon name="branch" size={15} /> {t.message.branchFrom}{" "}
      <a
        href={pathOf(parent.threadId)}
        dir="auto"
        onClick={(event) => {
          if (event.metaKey || event.ctrlKey || event.shiftKey) return;
          event.preventDefault();
          onOpen(parent.threadId);
        }}
      >
        {parent.title ?? t.untitled}
      </a>
    </p>
  );
}

/** The branches that begin behind a message. */
export function BranchMenu({ branches, onOpen }: { branches: BranchLink[]; onOpen(threadId: string): void }) {
  const t = useText();
  return (
    <Menu
      label={t.turn.branches(branches.length)}
      className="button button-plain button-small"
      trigger={
        <>
          <Icon name="branch" size={15} /> {branches.length}
        </>
      }
      items={branches.map((branch) => ({
        id: branch.threadId,
        label: branch.title ?? t.untitled,
        onSelect: () => onOpen(branch.threadId),
      }))}
    />
  );
}
