/**
 * Comma- and tab-separated values.
 *
 * Invariant: reads what RFC 4180 writes; a file that does not keep to it still becomes rows.
 */

export interface Table {
  header: string[];
  rows: string[][];
  /** There are more rows than are shown. */
  cut: boolean;
}

export function parseTable(text: string, separator: "," | "\t", limit = 1000): Table {
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = "";
  let quoted = false;
  let index = 0;
  const endCell = () => {
    row.push(cell);
    cell = "";
  };
  const endRow = () => {
    endCell();
    if (row.length > 1 || row[0] !== "") rows.push(row);
    row = [];
  };
  while (index < text.length && rows.length <= limit) {
    const char = text[index];
    if (quoted) {
      if (char === '"' && text[index + 1] === '"') {
        cell += '"';
        index += 1;
      } else if (char === '"') quoted = false;
      else cell += char;
    } else if (char === '"' && cell === "") quoted = true;
    else if (char === separator) endCell();
    else if (char === "\n") endRow();
    else if (char !== "\r") cell += char;
    index += 1;
  }
  if (cell !== "" || row.length > 0) endRow();
  const [header = [], ...body] = rows;
  return { header, rows: body.slice(0, limit), cut: index < text.length };
}
