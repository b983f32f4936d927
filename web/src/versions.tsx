// The versions of a dataset, the newest first.
import { bytes, count, moment } from "./words.ts";

export interface Version {
  number: number;
  time: number; // milliseconds
  kind: string;
  load: string;
  rows: number;
  files: number;
  bytes: number;
  rejected: number;
}

export function Versions({ versions }: { versions: Version[] }) {
  if (!versions.length) return null;
  return (
    <section class="card flush" aria-label="versions">
      <h2>Versions</h2>
      <div class="scroll" role="region" aria-label="versions of the dataset" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th class="num">version</th>
              <th>time</th>
              <th>kind</th>
              <th class="num">rows</th>
              <th class="num">files</th>
              <th class="num">size</th>
              <th class="num">rejected</th>
            </tr>
          </thead>
          <tbody>
            {versions.map((one) => (
              <tr key={one.number}>
                <td class="num">{one.number}</td>
                <td>{moment(one.time / 1000)}</td>
                <td>{one.kind}</td>
                <td class="num">{count(one.rows)}</td>
                <td class="num">{count(one.files)}</td>
                <td class="num">{bytes(one.bytes)}</td>
                <td class="num">{count(one.rejected)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
