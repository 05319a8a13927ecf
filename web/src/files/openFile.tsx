/** Which conversation the page shows, and how one of its files is opened. Invariant: one place knows. */
import { createContext, useContext } from "react";

export interface FileOpener {
  threadId: string | null;
  open(path: string): void;
}

export const FileOpenerContext = createContext<FileOpener>({ threadId: null, open: () => {} });

export function useOpenFile(): FileOpener {
  return useContext(FileOpenerContext);
}
