// Server-sent events, read with fetch, because EventSource cannot send a token.
import { request } from "./api.ts";

export interface Event {
  name: string;
  data: string;
  id: string;
}

/** Splits a text into events; what is not complete yet stays in `rest`. */
export function parse(text: string): { events: Event[]; rest: string } {
  const blocks = text.split("\n\n");
  const rest = blocks.pop() ?? "";
  const events: Event[] = [];
  for (const block of blocks) {
    const event: Event = { name: "message", data: "", id: "" };
    for (const line of block.split("\n")) {
      if (line.startsWith("event: ")) event.name = line.slice(7);
      else if (line.startsWith("data: ")) event.data += line.slice(6);
      else if (line.startsWith("id: ")) event.id = line.slice(4);
    }
    if (event.data) events.push(event);
  }
  return { events, rest };
}

/** Reads one stream to its end. Opening it again is up to the caller. */
export async function read(
  path: string,
  onEvent: (event: Event) => void,
  stop: AbortSignal,
  last = "",
): Promise<void> {
  const headers: Record<string, string> = last ? { "last-event-id": last } : {};
  const answer = await request(path, { signal: stop, headers });
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  let text = "";
  while (true) {
    const { done, value } = await reader.read();
    if (done) return;
    const found = parse(text + decoder.decode(value, { stream: true }));
    text = found.rest;
    found.events.forEach(onEvent);
  }
}
