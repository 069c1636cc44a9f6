// Adding the documents of a file, where one may write.

import { ask } from "./api.js";
import { shaped, showColumns } from "./columns.js";
import { $, number, percent, plural } from "./dom.js";
import { records } from "./records.js";
import { announce, info, on } from "./state.js";

const MOST = 500; // documents sent together
const LONGEST = 1e6; // characters
const SEEN = 20; // records that columns are guessed by

let written = 0;

// Send some, and say where in the file the service met something wrong.
async function write(lines) {
  const first = written;
  const answer = await ask("v1/documents", `${lines.join("\n")}\n`).catch(({ message }) => ({ written: 0, error: message }));
  written += answer.written;
  if (answer.error) throw new Error(answer.error.replace(/'the stream', line (\d+)/, (_, line) => `Record ${number(first + Number(line))}`));
}

async function send(file) {
  let [lines, length, share] = [[], 0, 0];
  for await (const [record, line] of records(file, (bytes) => (share = bytes / file.size))) {
    lines.push(record ? shaped(record, line, `${file.name}:${written + lines.length + 1}`) : line);
    length += lines.at(-1).length;
    if (lines.length < MOST && length < LONGEST) continue;
    await write(lines);
    [lines, length] = [[], 0];
    $("upload-status").textContent = `${plural(written, "document")}, ${percent(share)} of the file`;
  }
  await write(lines);
}

async function submit(event) {
  event.preventDefault();
  written = 0;
  $("upload-send").disabled = true;
  const wrong = await send($("upload-file").files[0]).then(() => "", (error) => (error instanceof TypeError ? "The file is not UTF-8." : error.message));
  $("upload-send").disabled = false;
  $("upload-status").textContent = `${wrong} ${plural(written, "document")} added.`;
  announce("restart");
}

// The first rows, or none where they cannot be read: that is said when they are sent.
async function preview() {
  const [rows, file] = [[], $("upload-file").files[0]];
  try {
    for await (const [record] of records(file, () => {})) if (rows.push(record) === SEEN) break;
  } catch {} // eslint-disable-line no-empty
  $("upload-status").textContent = "";
  showColumns(rows.filter((row) => row && typeof row === "object"));
}

export function setUpUpload() {
  $("upload-file").addEventListener("change", preview);
  on("info", () => ($("add").hidden = !info.writable));
  $("add").addEventListener("click", () => $("upload").showModal());
  $("upload-form").addEventListener("submit", submit);
  $("upload-close").addEventListener("click", () => $("upload").close());
}
