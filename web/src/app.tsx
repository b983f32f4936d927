// The frame of the page: the bar, the login, and the page that the address names.
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { login, offline, token, useToken } from "./api.ts";
import { ClusterView } from "./cluster.tsx";
import { Jobs } from "./jobs.tsx";
import { LiveJob } from "./live.tsx";
import { choose, follow, option, route } from "./route.ts";
import { SqlPage } from "./sql.tsx";
import { TablesPage } from "./tables.tsx";

const embedded = document.getElementById("app")?.dataset.mode === "embedded";
const PAGES: [string, string][] = embedded
  ? [
      ["sql", "SQL"],
      ["tables", "Tables"],
    ]
  : [
      ["jobs", "Jobs"],
      ["cluster", "Cluster"],
    ];

function Login() {
  return (
    <form
      class="card login"
      onSubmit={(event) => {
        event.preventDefault();
        const given = new FormData(event.currentTarget).get("token");
        useToken(String(given ?? "").trim());
      }}
    >
      <h1>Token</h1>
      <p class="dim" style={{ margin: 0 }} role="alert">
        {login.value}
      </p>
      <label class="field" style={{ display: "grid" }}>
        The token that <code>caudal token new</code> printed
        <input name="token" type="password" autocomplete="off" required />
      </label>
      <button type="submit" class="main">
        go on
      </button>
      <p class="dim small" style={{ margin: 0 }}>
        It stays in this tab and is sent only to {location.host}.
      </p>
    </form>
  );
}

function Here() {
  const [page, name] = route.value.parts;
  if (embedded && login.value) return <p class="notice bad">{login.value}</p>;
  if (embedded) return page === "tables" ? <TablesPage /> : <SqlPage />;
  if (login.value) return <Login />;
  if (page === "jobs" && name) return <LiveJob key={name} job={name} />;
  if (page === "jobs") return <Jobs />;
  if (page === "cluster") return <ClusterView />;
  return <p class="notice">There is no page {page}.</p>;
}

function App() {
  const here = route.value.parts[0];
  const page = embedded && here !== "tables" ? "sql" : here;
  const title = PAGES.find(([name]) => name === page)?.[1] ?? "Caudal";
  useEffect(() => {
    document.title = `${title} · Caudal`;
  }, [title]);
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById("main")?.focus()}>
        to the content
      </button>
      <header class="bar">
        <a class="name" href={embedded ? "#/sql" : "#/jobs"}>
          <img src="/page/icon.svg" alt="" />
          Caudal
        </a>
        <nav aria-label="pages">
          {PAGES.map(([name, words]) => (
            <a key={name} href={`#/${name}`} aria-current={name === page ? "page" : undefined}>
              {words}
            </a>
          ))}
        </nav>
        <span class="grow" />
        {offline.value && (
          <span class="state warn" role="status">
            the gateway does not answer: trying again
          </span>
        )}
        {token.value && !embedded && (
          <button
            type="button"
            onClick={() => {
              useToken("");
              location.reload();
            }}
          >
            forget the token
          </button>
        )}
      </header>
      <main id="main" tabIndex={-1}>
        <Here key={token.value} />
      </main>
    </>
  );
}

follow();
if (option("key")) {
  useToken(option("key")); // of `caudal ui`: out of the address, so that it is not shared
  choose("key", "");
}
render(<App />, document.getElementById("app") as HTMLElement);
