/**
 * A picture in a text somebody else wrote.
 *
 * Invariant: loading it would tell its server what is in the address, so a picture from elsewhere is only a link; one of
 * this conversation's files is shown.
 */
import { useText } from "../text/language";
import { Icon } from "../ui/Icon";
import { safeLink, threadFile } from "./address";
import { FilePicture } from "./FileLink";
import { OutsideLink } from "./OutsideLink";

const INLINE = /^data:image\/(png|jpe?g|gif|webp|avif);base64,[a-z0-9+/=\s]+$/i;

export function RemotePicture({ src, alt }: { src: string; alt: string }) {
  const t = useText();
  const file = threadFile(src);
  if (file) return <FilePicture path={file} alt={alt} />;
  if (INLINE.test(src)) return <img className="picture" src={src} alt={alt} />;
  const link = safeLink(src);
  return (
    <span className="remote-picture">
      <Icon name="image" size={16} /> {t.remote.image}
      {alt && <>: {alt}</>} {link && <OutsideLink href={link}>{t.open}</OutsideLink>}
    </span>
  );
}
