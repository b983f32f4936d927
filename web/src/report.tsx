// A saved report: the page of a job, with its data in the same file.
import { render } from "preact";
import { JobPage } from "./job.tsx";
import type { ReportData } from "./kinds.ts";
import { follow } from "./route.ts";
import { count, moment } from "./words.ts";

const data = JSON.parse(document.getElementById("data")?.textContent ?? "{}") as ReportData;

function Report() {
  const cut = Object.entries(data.results).filter(([, one]) => one.rows.length < one.about.rows);
  const note = cut.map(
    ([query, one]) =>
      `${query}: the first ${count(one.rows.length)} of ${count(one.about.rows)} rows`,
  );
  return (
    <main>
      <p class="dim small">Report of {moment(data.made)}</p>
      <JobPage
        data={data}
        rejects={data.rejects}
        note={note.join("; ")}
        open={async (query) => {
          const found = data.results[query];
          if (!found) throw new Error(`${query} has no answer in this report`);
          const about = { ...found.about, rows: found.rows.length };
          return { about, rows: async (offset, limit) => found.rows.slice(offset, offset + limit) };
        }}
      />
    </main>
  );
}

document.title = `${data.status.application} ${data.job}`;
follow();
render(<Report />, document.getElementById("app") as HTMLElement);
