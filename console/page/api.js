// Asking the server that this page came from. The token for actions comes in the address after '#',
// and is kept for this tab only.

const KEY = "jzx-token";
let token = null;

/** Takes the token out of the address, so that it is in no bookmark and no screenshot. True: there was
 * one, and nothing else. */
export function takeToken() {
  const words = new URLSearchParams(location.hash.slice(1));
  const given = words.get("token");
  try {
    if (given) sessionStorage.setItem(KEY, given);
    token = given || token || sessionStorage.getItem(KEY);
  } catch {
    token = given || token; // no storage: this page's memory has to do
  }
  words.delete("token");
  const rest = words.toString();
  if (given) history.replaceState(null, "", location.pathname + location.search + (rest && `#${rest}`));
  return Boolean(given) && !rest;
}

export const hasToken = () => Boolean(token);

/** What went wrong, in a sentence: `reached` is false if the program or its server is not there. */
export class ApiError extends Error {
  constructor(text, code, status, body = {}) {
    super(text);
    this.code = code;
    this.status = status;
    this.end = body.end ?? null; // how the program went, if it did
    this.sinceMs = body.since_ms ?? null;
    this.reached = status !== 0 && status < 500;
  }
}

async function ask(path, { signal, ...options }, timeout) {
  const headers = { ...(options.headers || {}) };
  if (token) headers["X-Jzx-Token"] = token;
  let response;
  try {
    response = await fetch(path, {
      ...options,
      headers,
      cache: "no-store",
      credentials: "same-origin",
      redirect: "error",
      signal: signal ?? AbortSignal.timeout(timeout),
    });
  } catch (error) {
    const text =
      error.name === "TimeoutError"
        ? "The console did not answer in time."
        : "The console's server cannot be reached.";
    throw new ApiError(text, "UNREACHABLE", 0);
  }
  let body;
  try {
    body = await response.json();
  } catch {
    throw new ApiError(
      `The server answered with status ${response.status} and no reason.`,
      "BAD_ANSWER",
      response.status,
    );
  }
  if (!response.ok || body.ok === false) {
    throw new ApiError(
      body.text || `The server answered with status ${response.status}.`,
      body.error || "REFUSED",
      response.status,
      body,
    );
  }
  return body;
}

/** GET /api/<what>?members; null members are left out. */
export function get(what, members = {}, timeout = 5000, signal = null) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(members)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, value);
  }
  const text = query.toString();
  return ask(`api/${what}${text ? `?${text}` : ""}`, { signal }, timeout);
}

/** POST /api/<what>: stop, kill, restart or send. */
export function post(what, body) {
  return ask(
    `api/${what}`,
    {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    },
    5000,
  );
}
