// Repeats a request while a page is open and visible. The next one begins after the last ended.
import { useEffect } from "preact/hooks";

export function usePolling(
  ask: (stop: AbortSignal) => Promise<unknown>,
  everyMs: number,
  inputs: unknown[],
): void {
  useEffect(() => {
    const stop = new AbortController();
    let timer = 0;
    const turn = async () => {
      try {
        if (!document.hidden) await ask(stop.signal);
      } catch {
        // shown by whoever asked; the next turn tries again
      }
      if (!stop.signal.aborted) timer = window.setTimeout(turn, everyMs);
    };
    turn();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, inputs);
}
