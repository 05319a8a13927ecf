/** The server's limits for uploads. Invariant: what it would refuse is refused here, before a byte is sent. */
import type { UploadLimits } from "../api/conversation";
import { readableSize } from "../files/fileKind";
import type { Text } from "../text/en";

/** Why a file is not sent at all. */
export function refusalOf(
  file: { size: number },
  others: readonly { size: number }[],
  limits: UploadLimits,
  t: Text,
): string | null {
  if (file.size > limits.max_file_size) return t.composer.uploadTooLarge(readableSize(limits.max_file_size));
  if (others.length >= limits.max_files) return t.attach.tooMany(limits.max_files);
  const total = others.reduce((sum, one) => sum + one.size, file.size);
  if (total > limits.max_total_size) return t.attach.tooMuch(readableSize(limits.max_total_size));
  return null;
}
