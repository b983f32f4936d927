// Requests to a gateway. The token stays in this tab and is sent as a header.
// If the gateway does not answer, the page goes on with another one of those that it was told when
// it was served. The policy of the page permits no other. Every request may be sent twice.
import { signal } from "@preact/signals";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly later = 0, // seconds after which to ask again; 0: the gateway did not say
  ) {
    super(message);
  }
}

const KEY = "caudal-token";
export const token = signal(sessionStorage.getItem(KEY) ?? "");
export const login = signal(""); // why a token is asked for; empty: it is not
export const offline = signal(false); // the last request got no answer
export const gateway = signal(""); // origin of the gateway that answers; empty: the page's own

export function useToken(given: string): void {
  sessionStorage.setItem(KEY, given);
  token.value = given;
  login.value = "";
}

function headers(more: Record<string, string> = {}): Record<string, string> {
  return token.value ? { ...more, authorization: `Bearer ${token.value}` } : more;
}

/** The gateways in the order to try: the one that answered last, the page's own, the others. */
export function inTurn(now: string, own: string, told: string[]): string[] {
  return [...new Set([now, "", ...told.filter((one) => one !== own)])];
}

function gateways(): string[] {
  const told = document.getElementById("app")?.dataset.gateways?.split(" ") ?? [];
  return inTurn(gateway.value, location.origin, told.filter(Boolean));
}

async function answered(path: string, init: RequestInit): Promise<Response> {
  let last: unknown;
  for (const origin of gateways()) {
    try {
      const answer = await fetch(origin + path, init);
      gateway.value = origin;
      return answer;
    } catch (error) {
      if (!(error instanceof TypeError)) throw error; // it was stopped
      last = error;
    }
  }
  throw last;
}

export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  let answer: Response;
  try {
    answer = await answered(path, {
      ...init,
      headers: headers(init.headers as Record<string, string> | undefined),
      cache: "no-store",
    });
  } catch (error) {
    if (error instanceof TypeError) offline.value = true;
    throw error;
  }
  offline.value = false;
  if (answer.ok) return answer;
  throw await refusal(answer);
}

async function refusal(answer: Response): Promise<ApiError> {
  let code = "";
  let message = `the gateway answered ${answer.status}`;
  try {
    const body = (await answer.json()) as { error: { code: string; message: string } };
    ({ code, message } = body.error);
  } catch {
    // not from a gateway: the status must do
  }
  if (answer.status === 401) login.value = message;
  const later = Number(answer.headers.get("retry-after")) || 0; // a date is no number
  return new ApiError(answer.status, code, message, later);
}

export async function get<T>(path: string, stop?: AbortSignal): Promise<T> {
  const init: RequestInit = { headers: { accept: "application/json" } };
  if (stop) init.signal = stop;
  return (await (await request(path, init)).json()) as T;
}

export async function send<T>(
  method: string,
  path: string,
  body?: unknown,
  stop?: AbortSignal,
): Promise<T> {
  const init: RequestInit = { method };
  if (stop) init.signal = stop;
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { "content-type": "application/json" };
  }
  return (await (await request(path, init)).json()) as T;
}

/** Saves what a path answers as a file. */
export async function download(path: string, accept: string, name: string): Promise<void> {
  const answer = await request(path, { headers: { accept } });
  save(await answer.blob(), name);
}

export function save(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Waits for so many milliseconds, or until it is stopped. */
export function pause(milliseconds: number, stop: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const end = () => {
      stop.removeEventListener("abort", end);
      done();
    };
    stop.addEventListener("abort", end);
    setTimeout(end, milliseconds);
  });
}

export function said(error: unknown): string {
  if (error instanceof ApiError) return error.message;
  if (error instanceof TypeError) return "the gateway does not answer";
  return String(error);
}
