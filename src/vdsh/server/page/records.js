// Files to records, as a stream: JSON lines and CSV as `vdsh index` reads them.

// Gives each record, undefined where it is no JSON, and whether its values are typed; `seen` hears how many bytes were read.
export const records = (file, seen) => (/\.csv$/i.test(file.name) ? table : lines)(texts(file, seen));

async function* texts(file, seen) {
  const [decoder, reader] = [new TextDecoder("utf-8", { fatal: true }), file.stream().getReader()];
  for (let bytes = 0, done = false, value; !done;) {
    ({ done, value } = await reader.read());
    seen(bytes += value?.length || 0);
    yield decoder.decode(value, { stream: !done });
  }
}

async function* lines(parts) {
  let rest = "";
  for await (const part of parts) {
    const some = (rest + part).split("\n");
    rest = some.pop();
    for (const line of some) if (line.trim()) yield parsed(line);
  }
  if (rest.trim()) yield parsed(rest);
}

// Whole numbers that JavaScript would round, such as ids, stay as they are written.
const exact = (_, value, { source } = {}) => (source && Number.isInteger(value) && !Number.isSafeInteger(value) ? JSON.rawJSON(source) : value);

function parsed(line) {
  try {
    return [JSON.parse(line, exact), true];
  } catch {
    return [undefined, true];
  }
}

async function* table(parts) {
  let header = null;
  for await (const cells of rows(parts)) {
    if (header && cells.slice(header.length).some(Boolean)) throw new Error(`A row has ${cells.length} cells under ${header.length} columns.`);
    if (header && cells.some(Boolean)) yield [Object.fromEntries(cells.slice(0, header.length).map((cell, i) => [header[i], cell])), false];
    header ||= cells;
  }
}

async function* rows(parts) {
  let [row, cell, quoted, closed, delimiter] = [[], "", false, false]; // closed: perhaps half of a quote
  for await (const part of parts) {
    delimiter ||= [",", ";", "\t"].reduce((best, one) => (count(part, one) > count(part, best) ? one : best));
    for (const char of part) {
      if (char === '"' && (quoted || closed || !cell)) {
        if (closed) cell += char;
        [quoted, closed] = [!quoted, quoted];
      } else if (!quoted && (char === delimiter || char === "\n")) {
        row.push(cell);
        [cell, closed] = ["", false];
        if (char === "\n") yield row.splice(0);
      } else if (quoted || !"\r\ufeff".includes(char)) cell += char;
    }
  }
  if (row.length || cell) yield [...row, cell];
}

const count = (part, delimiter) => part.split("\n", 1)[0].split(delimiter).length;
