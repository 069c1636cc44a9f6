// Adding the documents of a file, where one may write.

import { ask } from "./api.js";
import { shaped, showColumns } from "./columns.js";
import { $, number, percent, plural } from "./dom.js";
import { records } from "./records.js";
import { announce, info, on } from "./state.js";

const MOST = 500; // documents sent together
const SHARE = 1 / 4; // characters of a body, whose limit counts bytes
const SEEN = 20; // records that columns are guessed by

let written = 0;

const wrongAt = (record, why) => new Error(`Record ${number(record)}: ${why}`);

// Send some; where the service refuses them, one by one up to the first that is wrong.
async function write(documents) {
  if (!documents.length) return;
  try {
    written += (await ask("v1/documents", { documents })).written;
  } catch (error) {
    if (![413, 422].includes(error.status)) throw error;
    if (documents.length === 1) throw wrongAt(written + 1, error.message.replace(/documents\.0(\.|: )?/, ""));
    for (const one of documents) await write([one]);
  }
}

async function send(file) {
  let [documents, length, share] = [[], 0, 0];
  const [most, longest] = [Math.min(MOST, info.limits.batch), SHARE * info.limits.body];
  for await (const [record, isTyped] of records(file, (bytes) => (share = bytes / file.size))) {
    const place = written + documents.length + 1;
    if (record === undefined) throw wrongAt(place, "broken JSON.");
    documents.push(shaped(record, isTyped, `${file.name}:${place}`));
    length += JSON.stringify(documents.at(-1)).length;
    if (documents.length < most && length < longest) continue;
    await write(documents);
    [documents, length] = [[], 0];
    $("upload-status").textContent = `${plural(written, "document")}, ${percent(share)} of the file`;
  }
  await write(documents);
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
