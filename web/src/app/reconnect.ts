/**
 * Waits for a server that went away.
 *
 * Invariant: asks more and more slowly, and at once when the browser says that the network is back.
 */
import { useCallback, useEffect, useRef, useState } from "react";
import { serverAnswers } from "./server";

const FIRST_MS = 800;
const LONGEST_MS = 8000;

export function useReconnect(onBack: () => void): { offline: boolean; lost(): void } {
  const [offline, setOffline] = useState(false);
  const back = useRef(onBack);
  back.current = onBack;
  useEffect(() => {
    if (!offline) return;
    let wait = FIRST_MS;
    let timer: ReturnType<typeof setTimeout>;
    let alive = true;
    const ask = async () => {
      clearTimeout(timer);
      const answers = await serverAnswers();
      if (!alive) return;
      if (answers) {
        setOffline(false);
        back.current();
        return;
      }
      wait = Math.min(wait * 1.6, LONGEST_MS);
      timer = setTimeout(() => void ask(), wait);
    };
    const soon = () => void ask();
    timer = setTimeout(soon, FIRST_MS);
    addEventListener("online", soon);
    return () => {
      alive = false;
      clearTimeout(timer);
      removeEventListener("online", soon);
    };
  }, [offline]);
  const lost = useCallback(() => setOffline(true), []);
  return { offline, lost };
}
