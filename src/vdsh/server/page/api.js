// Asking the service, with its token where it wants one.

import { announce, state } from "./state.js";

const TOKEN = "vdsh-token"; // kept for this tab only

export class Failure extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

export const keepToken = (token) => sessionStorage.setItem(TOKEN, token);

// `arrived` is called with the number of bytes that have come, as they come.
export async function ask(path, body = null, { signal, arrived } = {}) {
  const place = state.store ? path.replace("v1/", `v1/stores/${encodeURIComponent(state.store)}/`) : path;
  const token = sessionStorage.getItem(TOKEN);
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  if (body) headers["Content-Type"] = "application/json";
  const options = { method: body ? "POST" : "GET", headers, signal, body: body && JSON.stringify(body) };
  const response = await fetch(place, options).catch(broken);
  const answer = await read(response, arrived);
  if (response.ok) return answer;
  if (response.status === 401) announce("refused", Boolean(token));
  throw new Failure(response.status, answer.error || `The service answered ${response.status}.`);
}

function broken(error) {
  if (error.name === "AbortError") throw error;
  throw new Failure(0, "The service does not answer. Is `vdsh serve` still running?");
}

async function read(response, arrived) {
  const parts = [];
  let bytes = 0;
  try {
    for (const reader = response.body.getReader(); ;) {
      const { done, value } = await reader.read();
      if (done) break;
      parts.push(value);
      arrived?.(bytes += value.length);
    }
  } catch (error) {
    broken(error);
  }
  try {
    return JSON.parse(await new Blob(parts).text());
  } catch {
    return {};
  }
}
