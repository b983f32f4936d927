// Puts data into the page of a report. caudal/results/report.py does the same.
export function filled(page: string, data: unknown): string {
  const text = JSON.stringify(data).replaceAll("<", "\\u003c");
  return page.replace("/*data*/", () => text);
}
