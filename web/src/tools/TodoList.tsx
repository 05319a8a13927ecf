/** The agent's plan. Invariant: the state of each point is also a word. */
import { useText } from "../text/language";
import { Icon } from "../ui/Icon";
import type { Todo } from "./results";

export function TodoList({ todos }: { todos: readonly Todo[] }) {
  const t = useText();
  return (
    <ul className="todos">
      {todos.map((todo, index) => (
        <li key={index} className={`todo todo-${todo.status}`}>
          <span className="todo-mark">
            {todo.status === "completed" && <Icon name="check" size={14} />}
            {todo.status === "in_progress" && <span className="spinner" />}
          </span>
          <span dir="auto">{todo.content}</span>
          <span className="unseen">({t.tool.todoStatus[todo.status]})</span>
        </li>
      ))}
    </ul>
  );
}
