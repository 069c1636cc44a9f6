// A service that wants a token: it is asked for, also after the question was closed.

import { keepToken } from "./api.js";
import { $, showFailure } from "./dom.js";
import { announce, on } from "./state.js";

const CLOSED = { message: "Without its token this service does not answer.", button: "Enter the token" };

function askForToken(refused) {
  if ($("token").open) return;
  if (refused) $("token-why").textContent = "That token is not the one this service was started with.";
  $("token-value").value = "";
  $("token").showModal();
}

export function setUpToken() {
  let given = false;
  on("refused", askForToken);
  $("token-form").addEventListener("submit", () => {
    given = true;
    keepToken($("token-value").value.trim());
    announce("restart");
  });
  $("token").addEventListener("close", () => { // by Esc, unless a token was given
    if (!given) showFailure(CLOSED, () => askForToken(false));
    given = false;
  });
}
