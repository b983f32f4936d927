// The rows of an answer that still grows: those that are certain, marked as not all of them.
import { useRef, useState } from "preact/hooks";
import type { SoFar } from "./kinds.ts";
import { usePolling } from "./polling.ts";
import { count, shown } from "./words.ts";

const EVERY_MS = 3000;
const MOST_SHOWN = 200;

export type AskSoFar = (query: string, after: number, stop: AbortSignal) => Promise<SoFar>;

export function batches(found: SoFar | null): number {
  return Object.values(found?.covered ?? {}).reduce((sum, one) => sum + one, 0);
}

/** The newer of two looks. Another gateway may have looked earlier, or at an earlier run. */
export function newer(known: SoFar | null, next: SoFar): SoFar | null {
  if (!next.rows) return known?.run === next.run ? known : null;
  return known?.run === next.run && batches(known) >= batches(next) ? known : next;
}

export function Growing({ query, ask }: { query: string; ask: AskSoFar }) {
  const [found, setFound] = useState<SoFar | null>(null);
  const known = useRef<SoFar | null>(null);
  usePolling(
    async (stop) => {
      known.current = newer(known.current, await ask(query, batches(known.current), stop));
      setFound(known.current);
    },
    EVERY_MS,
    [query],
  );
  if (!found?.rows) return <p class="dim">{query} is not answered yet.</p>;
  return (
    <div role="region" aria-label={`${query} so far`}>
      <p class="notice">
        <strong>so far</strong>: {count(found.total)} {found.total === 1 ? "row" : "rows"} from{" "}
        {count(batches(found))} batches. They stay, and more may come
        {found.later.length > 0 && `; ${found.later.join(", ")} with the answer`}.
      </p>
      <Rows found={found} />
    </div>
  );
}

function Rows({ found }: { found: SoFar }) {
  const rows = (found.rows ?? []).slice(0, MOST_SHOWN);
  const more = found.total - rows.length;
  if (!rows.length) return null;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="rows so far">
      <table>
        <thead>
          <tr>
            {found.columns.map((one) => (
              <th key={one.name}>{one.name}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, place) => (
            <tr key={place}>
              {found.columns.map((one) => (
                <td key={one.name} dir="auto">
                  {shown(row[one.name])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {more > 0 && <p class="dim small">… and {count(more)} more</p>}
    </div>
  );
}
