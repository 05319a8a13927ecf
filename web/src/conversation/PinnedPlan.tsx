/** The plan above the composer, ticking. Invariant: folded to one line unless a person opens it; gone when it is done. */
import { useState } from "react";
import { useText } from "../text/language";
import type { Todo } from "../tools/results";
import { TodoList } from "../tools/TodoList";
import { Icon } from "../ui/Icon";

export function PinnedPlan({ todos, busy }: { todos: readonly Todo[]; busy: boolean }) {
  const t = useText();
  const [open, setOpen] = useState(false);
  if (todos.length === 0) return null;
  const done = todos.filter((todo) => todo.status === "completed").length;
  // From then on it is where it was made: in the conversation.
  if (!busy && done === todos.length) return null;
  const current = todos.find((todo) => todo.status === "in_progress");
  return (
    <section className="plan" aria-label={t.tool.todos}>
      <button type="button" className="plan-head" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="list" size={16} />
        <span className="plan-title">{current?.content ?? t.tool.todos}</span>
        <span className="plan-count">{t.tool.todosDone(done, todos.length)}</span>
        <span className={open ? "tool-chevron tool-chevron-open" : "tool-chevron"}>
          <Icon name="chevron" size={14} />
        </span>
      </button>
      {open && <TodoList todos={todos} />}
    </section>
  );
}
