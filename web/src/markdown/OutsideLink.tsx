/** A link that leaves the page. Invariant: a person sees the whole address before anything is asked of it. */
import { type ReactNode, useState } from "react";
import { useText } from "../text/language";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { hostOf } from "./address";

export function OutsideLink({ href, children }: { href: string; children: ReactNode }) {
  const t = useText();
  const [asking, setAsking] = useState(false);
  return (
    <>
      <a
        href={href}
        title={href}
        target="_blank"
        rel="noopener noreferrer nofollow"
        onClick={(event) => {
          event.preventDefault();
          setAsking(true);
        }}
      >
        {children}
        <span className="link-host"> {hostOf(href)}</span>
      </a>
      {asking && (
        <Dialog title={t.remote.linkTitle} onClose={() => setAsking(false)}>
          <p>{t.remote.linkText}</p>
          <p>
            <code className="whole-address">{href}</code>
          </p>
          <div className="dialog-actions">
            <Button onClick={() => setAsking(false)}>{t.cancel}</Button>
            <Button
              look="primary"
              onClick={() => {
                setAsking(false);
                window.open(href, "_blank", "noopener,noreferrer");
              }}
            >
              {t.remote.openLink}
            </Button>
          </div>
        </Dialog>
      )}
    </>
  );
}
