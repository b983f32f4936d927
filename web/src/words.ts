// Numbers and times as people read them.
export function count(value: number): string {
  return value.toLocaleString("en");
}

export function bytes(value: number): string {
  if (value < 1000) return `${value} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let rest = value;
  let unit = -1;
  while (rest >= 999.5 && unit < units.length - 1) {
    rest /= 1000;
    unit += 1;
  }
  return `${rest < 10 ? rest.toFixed(1) : Math.round(rest)} ${units[unit]}`;
}

export function seconds(value: number): string {
  if (value < 0.01) return `${(value * 1000).toFixed(1)} ms`;
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 60) return `${value.toFixed(1)} s`;
  const minutes = Math.floor(value / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(value % 60)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d`;
}

export function moment(at: number): string {
  const date = new Date(at * 1000);
  const day = [date.getFullYear(), date.getMonth() + 1, date.getDate()];
  const words = day.map((one) => String(one).padStart(2, "0")).join("-");
  return `${words} ${date.toTimeString().slice(0, 8)}`;
}

export function ago(at: number, now = Date.now() / 1000): string {
  return `${seconds(Math.max(0, now - at))} ago`;
}

/** A value of a result in one line. */
export function shown(value: unknown): string {
  if (value === null || value === undefined) return "NULL";
  if (typeof value === "string") return value;
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : trimmed(value);
  return JSON.stringify(value);
}

function trimmed(value: number): string {
  const short = value.toPrecision(10);
  return short.includes("e") ? String(value) : short.replace(/\.?0+$/, "");
}
