// The frame of the page: the bar, the login, and the page that the address names.
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { gateway, login, offline, token, useToken } from "./api.ts";
import { ClusterView } from "./cluster.tsx";
import { DatasetList, DatasetView } from "./datasets.tsx";
import { Jobs } from "./jobs.tsx";
import { LiveJob } from "./live.tsx";
import { choose, follow, option, route } from "./route.ts";
import { SeriesPage } from "./series.tsx";
import { ClusterSql } from "./sql.tsx";
import { LocalSql, TablesPage, useSession } from "./tables.tsx";

const embedded = document.getElementById("app")?.dataset.mode === "embedded";
const PAGES: [string, string][] = embedded
  ? [
      ["sql", "SQL"],
      ["tables", "Tables"],
    ]
  : [
      ["jobs", "Jobs"],
      ["datasets", "Datasets"],
      ["sql", "SQL"],
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
        It stays in this tab and is sent only to {location.host} and the other gateways of its
        cluster.
      </p>
    </form>
  );
}

function Here() {
  const [page, name] = route.value.parts;
  if (embedded && login.value) return <p class="notice bad">{login.value}</p>;
  if (embedded)
    return page === "tables" ? <TablesPage /> : page === "series" ? <SeriesPage /> : <LocalSql />;
  if (login.value) return <Login />;
  if (page === "jobs" && name) return <LiveJob key={name} job={name} />;
  if (page === "jobs") return <Jobs />;
  if (page === "datasets" && name) return <DatasetView key={name} name={name} />;
  if (page === "datasets") return <DatasetList />;
  if (page === "sql") return <ClusterSql />;
  if (page === "cluster") return <ClusterView />;
  return <p class="notice">There is no page {page}.</p>;
}

/** The pages of `caudal ui`, which depend on what it was started with. */
function LocalApp() {
  const { seen } = useSession(0);
  const pages = [...PAGES];
  if (seen?.session.versions.length) pages[1] = ["tables", "Dataset"];
  if (seen?.session.series) pages.push(["series", "Series"]);
  return <App pages={pages} />;
}

function App({ pages }: { pages: [string, string][] }) {
  const here = route.value.parts[0];
  const page = embedded && here === "jobs" ? "sql" : here;
  const title = pages.find(([name]) => name === page)?.[1] ?? "Caudal";
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
          {pages.map(([name, words]) => (
            <a key={name} href={`#/${name}`} aria-current={name === page ? "page" : undefined}>
              {words}
            </a>
          ))}
        </nav>
        <span class="grow" />
        {gateway.value && (
          <span class="dim small" role="status">
            served by {gateway.value.replace(/^.*:\/\//, "")}
          </span>
        )}
        {offline.value && (
          <span class="state warn" role="status">
            no gateway answers: trying again
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
render(
  embedded ? <LocalApp /> : <App pages={PAGES} />,
  document.getElementById("app") as HTMLElement,
);
