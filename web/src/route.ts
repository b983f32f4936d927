// The view is in the address: #/jobs/ID?query=q1&tab=plan. So it can be shared and reloaded.
import { signal } from "@preact/signals";

export interface Route {
  parts: string[];
  options: URLSearchParams;
}

export function parseRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const parts = decoded(path.split("/").filter(Boolean));
  return { parts: parts.length ? parts : ["jobs"], options: new URLSearchParams(query) };
}

/** The parts of a path; none if one is no text, such as `%`. */
function decoded(parts: string[]): string[] {
  try {
    return parts.map(decodeURIComponent);
  } catch {
    return [];
  }
}

export function written(route: Route): string {
  const query = route.options.toString();
  return `#/${route.parts.map(encodeURIComponent).join("/")}${query ? `?${query}` : ""}`;
}

export const route = signal<Route>({ parts: ["jobs"], options: new URLSearchParams() });

export function follow(): void {
  const take = () => {
    route.value = parseRoute(location.hash);
  };
  window.addEventListener("hashchange", take);
  take();
}

/** Changes one option of the address; an empty value removes it. */
export const choose = (name: string, value: string): void => chooseAll({ [name]: value });

export function chooseAll(values: Record<string, string>): void {
  const { parts, options } = route.value;
  const changed = new URLSearchParams(options);
  for (const [name, value] of Object.entries(values))
    if (value) changed.set(name, value);
    else changed.delete(name);
  const next = { parts, options: changed };
  history.replaceState(null, "", written(next));
  route.value = next;
}

export const option = (name: string, otherwise = ""): string =>
  route.value.options.get(name) ?? otherwise;
