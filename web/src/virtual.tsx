// A table of many rows, of which only those in sight are in the document.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const ROW = 28;
const MOST_PIXELS = 15_000_000; // browsers have no taller elements
const SPARE = 8;

export interface Span {
  first: number;
  last: number;
}

/** Which rows are in sight, and how much room is above and below them. */
export function inSight(rows: number, top: number, height: number) {
  const whole = Math.min(rows * ROW, MOST_PIXELS);
  const fits = Math.ceil(height / ROW) + 2 * SPARE;
  const share = whole > height ? top / (whole - height) : 0;
  const most = Math.max(0, rows - fits);
  const near = whole === rows * ROW ? Math.floor(top / ROW) - SPARE : Math.round(share * most);
  const first = Math.min(Math.max(0, near), most);
  const last = Math.min(rows, first + fits);
  const above = whole === rows * ROW ? first * ROW : Math.min(top, whole - (last - first) * ROW);
  return {
    first,
    last,
    above: Math.max(0, above),
    below: Math.max(0, whole - above - (last - first) * ROW),
  };
}

export function VirtualTable(props: {
  rows: number;
  head: ComponentChildren;
  row: (place: number) => ComponentChildren;
  columns: number;
  label: string;
  most?: number;
  onSpan?: (span: Span) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(560);
  useLayoutEffect(() => {
    const place = box.current;
    if (!place) return;
    const watch = new ResizeObserver(() => setHeight(Math.max(place.clientHeight, 10 * ROW)));
    watch.observe(place);
    return () => watch.disconnect();
  }, []);
  const sight = inSight(props.rows, top, height);
  const { first, last } = sight;
  useEffect(() => props.onSpan?.({ first, last }), [first, last, props.rows]);
  const places = Array.from({ length: last - first }, (_, place) => first + place);
  return (
    <div
      class="virtual"
      ref={box}
      role="region"
      aria-label={props.label}
      tabIndex={0}
      style={{ maxHeight: `${props.most ?? 560}px` }}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
    >
      <table aria-rowcount={props.rows + 1}>
        <thead>{props.head}</thead>
        <tbody>
          <tr class="gap" aria-hidden="true">
            <td colSpan={props.columns} style={{ height: `${sight.above}px` }} />
          </tr>
          {places.map((place) => props.row(place))}
          <tr class="gap" aria-hidden="true">
            <td colSpan={props.columns} style={{ height: `${sight.below}px` }} />
          </tr>
        </tbody>
      </table>
    </div>
  );
}
