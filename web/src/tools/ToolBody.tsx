/** What is inside a tool card, by kind. Invariant: each kind has a file of its own; the rest is generic. */
import type { CallWithResult } from "../conversation/rows";
import { CommandBody } from "./CommandBody";
import { EditBody } from "./EditBody";
import { FilesBody } from "./FilesBody";
import { FindBody } from "./FindBody";
import { GenericBody } from "./GenericBody";
import { kindOf } from "./kind";
import { SearchBody } from "./SearchBody";
import { SubagentBody } from "./SubagentBody";
import { TodoList } from "./TodoList";
import { todosOf } from "./results";

export interface BodyProps extends CallWithResult {
  active: boolean;
  /** The run that it was made in, where that is known. */
  runId: string | undefined;
}

export function ToolBody(props: BodyProps) {
  switch (kindOf(props.call)) {
    case "command":
      return <CommandBody {...props} />;
    case "write":
    case "replace":
      return <EditBody {...props} />;
    case "find":
      return <FindBody {...props} />;
    case "web-search":
    case "image-search":
      return <SearchBody {...props} />;
    case "todos":
      return <TodoList todos={todosOf(props.call.args.todos)} />;
    case "subagent":
      return <SubagentBody {...props} />;
    case "present":
      return <FilesBody {...props} />;
    default:
      return <GenericBody {...props} />;
  }
}
