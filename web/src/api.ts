// Requests to the gateway. The token stays in this tab and is sent as a header.
import { signal } from "@preact/signals";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

const KEY = "caudal-token";
export const token = signal(sessionStorage.getItem(KEY) ?? "");
export const login = signal(""); // why a token is asked for; empty: it is not
export const offline = signal(false); // the last request got no answer

export function useToken(given: string): void {
  sessionStorage.setItem(KEY, given);
  token.value = given;
  login.value = "";
}

function headers(more: Record<string, string> = {}): Record<string, string> {
  return token.value ? { ...more, authorization: `Bearer ${token.value}` } : more;
}

export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(path, {
      ...init,
      headers: headers(init.headers as Record<string, string> | undefined),
      cache: "no-store",
    });
  } catch (error) {
    if (!(error instanceof DOMException)) offline.value = true;
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
  return new ApiError(answer.status, code, message);
}

export async function get<T>(path: string, stop?: AbortSignal): Promise<T> {
  const init: RequestInit = { headers: { accept: "application/json" } };
  if (stop) init.signal = stop;
  return (await (await request(path, init)).json()) as T;
}

export async function send<T>(method: string, path: string, body?: unknown): Promise<T> {
  const init: RequestInit = { method };
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

export function said(error: unknown): string {
  if (error instanceof ApiError) return error.message;
  if (error instanceof TypeError) return "the gateway does not answer";
  return String(error);
}
