/** A small archive, stored and not packed: what a skill comes as. */
import { crc32 } from "node:zlib";

export function zip(files: Record<string, string>): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const [name, text] of Object.entries(files)) {
    const [path, body] = [Buffer.from(name), Buffer.from(text)];
    const sums = Buffer.alloc(12);
    sums.writeUInt32LE(crc32(body), 0);
    sums.writeUInt32LE(body.length, 4);
    sums.writeUInt32LE(body.length, 8);
    const head = Buffer.from([0x50, 0x4b, 3, 4, 20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0]);
    const lengths = Buffer.alloc(4);
    lengths.writeUInt16LE(path.length, 0);
    const local = Buffer.concat([head, sums, lengths, path, body]);
    const entry = Buffer.alloc(46);
    Buffer.from([0x50, 0x4b, 1, 2, 20, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0]).copy(entry);
    sums.copy(entry, 16);
    entry.writeUInt16LE(path.length, 28);
    entry.writeUInt32LE(offset, 42);
    directory.push(entry, path);
    parts.push(local);
    offset += local.length;
  }
  const listed = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  Buffer.from([0x50, 0x4b, 5, 6]).copy(end);
  const count = Object.keys(files).length;
  end.writeUInt16LE(count, 8);
  end.writeUInt16LE(count, 10);
  end.writeUInt32LE(listed.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...parts, listed, end]);
}
